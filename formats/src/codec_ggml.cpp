// SPDX-License-Identifier: MIT
// q8_0 and q4_0: GGUF's blocks of 32 weights behind a half-precision scale, rounded as ggml rounds.
#include "formats/src/codecs.h"
#include "formats/src/float4.h"
#include "formats/src/half.h"

#include <algorithm>
#include <cmath>

namespace mnm {

namespace {

constexpr std::uint64_t q8_0_block = 2 + 32;
constexpr std::uint64_t q4_0_block = 2 + 16;
constexpr float half_max = 65504.0f;

void store_scale(std::byte* block, float scale) {
    // Beyond the largest half, ggml would store infinity and the whole block would be lost.
    const std::uint16_t half = to_half(std::clamp(scale, -half_max, half_max));
    std::memcpy(block, &half, 2);
}

float load_scale(const std::byte* block) {
    std::uint16_t half;
    std::memcpy(&half, block, 2);
    return from_half(half);
}

/// 1/d as ggml takes it, and 0 where it overflows: the stored half is then 0 anyway.
float inverse_of(float d) {
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    return std::isfinite(inverse) ? inverse : 0.0f;
}

/// roundf for |x| < 2^22: adding the float below one half, rather than one half, keeps
/// 0.49999997 from reaching 1.
std::int32_t round_half_away(float x) {
    return static_cast<std::int32_t>(x + std::copysign(0x1.fffffep-2f, x));
}

void plain_q4_0(const float* x, std::byte* block) {
    float amax = 0.0f, max = 0.0f;
    for (std::uint64_t i = 0; i < weight_group; ++i)
        if (amax < std::fabs(x[i])) {
            amax = std::fabs(x[i]);
            max = x[i];
        }
    const float d = max / -8.0f;
    const float inverse = inverse_of(d);
    store_scale(block, d);
    for (std::uint64_t j = 0; j < 16; ++j) {
        const int low = std::min(15, static_cast<int>(x[j] * inverse + 8.5f));
        const int high = std::min(15, static_cast<int>(x[j + 16] * inverse + 8.5f));
        block[2 + j] = static_cast<std::byte>(low | high << 4);
    }
}

} // namespace

void encode_q8_0(const float* source, std::uint64_t rows, std::uint64_t cols, const EncodeOptions&,
                 std::byte* data, std::byte*) {
    for (std::uint64_t g = 0; g < rows * cols / weight_group; ++g) {
        const float* __restrict x = source + g * weight_group;
        std::byte* __restrict block = data + g * q8_0_block;
        const float d = max_magnitude(x, weight_group) / 127.0f;
        const float inverse = inverse_of(d);
        store_scale(block, d);
        for (std::uint64_t i = 0; i < weight_group; ++i)
            block[2 + i] = static_cast<std::byte>(round_half_away(x[i] * inverse));
    }
}

void decode_q8_0(const std::byte* data, const std::byte*, std::uint64_t rows, std::uint64_t cols,
                 float* target) {
    for (std::uint64_t g = 0; g < rows * cols / weight_group; ++g) {
        const std::byte* block = data + g * q8_0_block;
        const float d = load_scale(block);
        for (std::uint64_t i = 0; i < weight_group; ++i)
            target[g * weight_group + i] =
                static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
    }
}

void encode_q4_0(const float* source, std::uint64_t rows, std::uint64_t cols,
                 const EncodeOptions& options, std::byte* data, std::byte*) {
    for (std::uint64_t g = 0; g < rows * cols / weight_group; ++g) {
        const float* x = source + g * weight_group;
        std::byte* block = data + g * q4_0_block;
        if (options.fit)
            store_scale(block, fit_group(x, options.search, block + 2));
        else
            plain_q4_0(x, block);
    }
}

void decode_q4_0(const std::byte* data, const std::byte*, std::uint64_t rows, std::uint64_t cols,
                 float* target) {
    for (std::uint64_t g = 0; g < rows * cols / weight_group; ++g) {
        const std::byte* block = data + g * q4_0_block;
        const float d = load_scale(block);
        for (std::uint64_t j = 0; j < 16; ++j) {
            const int byte = static_cast<int>(block[2 + j]);
            target[g * weight_group + j] = static_cast<float>((byte & 15) - 8) * d;
            target[g * weight_group + j + 16] = static_cast<float>((byte >> 4) - 8) * d;
        }
    }
}

} // namespace mnm
