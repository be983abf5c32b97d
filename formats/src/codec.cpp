// SPDX-License-Identifier: MIT
// The table of weight types, and the two float ones.
#include "formats/codec.h"

#include "formats/src/codecs.h"
#include "formats/src/half.h"

#include <cassert>

namespace mnm {

namespace {

std::uint64_t no_scales(std::uint64_t) {
    return 0;
}

void encode_f32(const float* source, std::uint64_t rows, std::uint64_t cols, const EncodeOptions&,
                std::byte* data, std::byte*) {
    std::memcpy(data, source, rows * cols * sizeof(float));
}

void decode_f32(const std::byte* data, const std::byte*, std::uint64_t rows, std::uint64_t cols,
                float* target) {
    std::memcpy(target, data, rows * cols * sizeof(float));
}

constexpr Codec codec_table[] = {
    {WeightType::f32, "f32", 32.0, 1, [](std::uint64_t cols) { return 4 * cols; }, no_scales,
     encode_f32, decode_f32},
    {WeightType::q8, "q8", 8.0, 1, [](std::uint64_t cols) { return cols; },
     [](std::uint64_t) -> std::uint64_t { return 4; }, encode_q8, decode_q8},
    {WeightType::q4, "q4", 5.0, weight_group, [](std::uint64_t cols) { return cols / 2; },
     [](std::uint64_t cols) { return cols / weight_group * 4; }, encode_q4, decode_q4},
    {WeightType::f16, "f16", 16.0, 1, [](std::uint64_t cols) { return 2 * cols; }, no_scales,
     encode_f16, decode_f16},
    {WeightType::q8_0, "q8_0", 8.5, weight_group,
     [](std::uint64_t cols) { return cols / weight_group * 34; }, no_scales, encode_q8_0,
     decode_q8_0},
    {WeightType::q4_0, "q4_0", 4.5, weight_group,
     [](std::uint64_t cols) { return cols / weight_group * 18; }, no_scales, encode_q4_0,
     decode_q4_0},
};

} // namespace

void encode_f16(const float* source, std::uint64_t rows, std::uint64_t cols, const EncodeOptions&,
                std::byte* data, std::byte*) {
    for (std::uint64_t i = 0; i < rows * cols; ++i) {
        const std::uint16_t half = to_half(source[i]);
        std::memcpy(data + 2 * i, &half, 2);
    }
}

void decode_f16(const std::byte* data, const std::byte*, std::uint64_t rows, std::uint64_t cols,
                float* target) {
    for (std::uint64_t i = 0; i < rows * cols; ++i) {
        std::uint16_t half;
        std::memcpy(&half, data + 2 * i, 2);
        target[i] = from_half(half);
    }
}

std::span<const Codec> codecs() {
    return codec_table;
}

const Codec* find_codec(std::string_view name) {
    for (const Codec& entry : codec_table)
        if (entry.name == name) return &entry;
    return nullptr;
}

const Codec& codec(WeightType type) {
    const Codec& entry = codec_table[static_cast<std::size_t>(type)];
    assert(entry.type == type);
    return entry;
}

} // namespace mnm
