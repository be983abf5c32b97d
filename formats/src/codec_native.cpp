// SPDX-License-Identifier: MIT
// q8 and q4 of the .mnm formats. The order of every float operation is part of the format.
#include "formats/src/codecs.h"
#include "formats/src/float4.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mnm {

namespace {

// A row or group this small would make 127/max overflow; it is first multiplied by a power of two,
// which is exact, and so is nearly everything after it. The other way round for sums near the top.
constexpr float tiny = 0x1p-119f;
constexpr float huge = 0x1p100f;
constexpr float lift = 0x1p64f;

/// max|x| of a row of any length.
float row_magnitude(const float* x, std::uint64_t cols) {
    const std::uint64_t even = cols / 4 * 4;
    float m = max_magnitude(x, even);
    for (std::uint64_t i = even; i < cols; ++i)
        m = std::fabs(x[i]) > m ? std::fabs(x[i]) : m;
    return m;
}

/// The integer nearest to x, |x| < 2^22, ties to even, in a form that vectorises on every x86.
std::int32_t nearest(float x) {
    return std::bit_cast<std::int32_t>(x + round_magic) - std::bit_cast<std::int32_t>(round_magic);
}

void round_row(const float* __restrict x, std::uint64_t cols, float before, float inverse,
               std::byte* __restrict q) {
    if (before != 1.0f) {
        for (std::uint64_t i = 0; i < cols; ++i)
            q[i] = static_cast<std::byte>(nearest(x[i] * before * inverse));
    } else {
        for (std::uint64_t i = 0; i < cols; ++i)
            q[i] = static_cast<std::byte>(nearest(x[i] * inverse));
    }
}

/// q + 8 of elements j and j + 16 in the two halves of byte j.
void pack(const std::int32_t* __restrict biased, std::byte* __restrict nibbles) {
    for (int j = 0; j < 16; ++j)
        nibbles[j] = static_cast<std::byte>(biased[j] | biased[j + 16] << 4);
}

float plain_group(const float* x, std::byte* nibbles) {
    const float max = max_magnitude(x, weight_group);
    std::int32_t q[weight_group];
    const float before = max < tiny ? lift : 1.0f;
    const float inverse = max > 0.0f ? 7.0f / (max * before) : 0.0f;
    for (std::uint64_t i = 0; i < weight_group; ++i)
        q[i] = nearest(x[i] * before * inverse) + 8;
    pack(q, nibbles);
    return max / 7.0f;
}

Float4 rounded(Float4 w, Float4 inverse) {
    const Float4 clamped = min4(max4(w * inverse, all4(-8.0f)), all4(7.0f));
    return (clamped + all4(round_magic)) - all4(round_magic);
}

/// What 1/scale times the first largest weight may be, or (the last one) times the largest
/// magnitude.
constexpr std::size_t candidate_count = 20;
constexpr float candidates[candidate_count] = {-7.1f, -7.2f, -7.3f, -7.4f, -7.5f, -7.6f, -7.7f,
                                               -7.8f, -7.9f, -8.0f, -8.1f, -8.2f, -8.3f, -8.4f,
                                               -8.5f, -8.6f, -8.7f, -8.8f, -8.9f, 7.0f};

/// The definition; four candidates side by side, so that no step has to wait for one that was just
/// begun.
void search_scale(const float* x, float first, float max, float* best, float* scale) noexcept {
    Float4 w[8];
    for (int k = 0; k < 8; ++k)
        w[k] = load4(x + 4 * k);
    float most = -1.0f;
    for (std::size_t c = 0; c < candidate_count; c += 4) {
        const bool last = c + 4 == candidate_count;
        const float over[4] = {first, first, first, last ? max : first};
        float inverse[4], merit[4], wq[4], qq[4];
        store4(load4(candidates + c) / load4(over), inverse);
        Float4 wqs[4], qqs[4];
        for (int i = 0; i < 4; ++i) {
            const Float4 by = all4(inverse[i]);
            wqs[i] = qqs[i] = all4(0.0f);
            for (const Float4& v : w) {
                const Float4 q = rounded(v, by);
                wqs[i] = wqs[i] + v * q;
                qqs[i] = qqs[i] + q * q;
            }
        }
        const Float4 all_wq = sum4_each(wqs[0], wqs[1], wqs[2], wqs[3]);
        const Float4 all_qq = sum4_each(qqs[0], qqs[1], qqs[2], qqs[3]);
        store4(all_wq, wq);
        store4(all_qq, qq);
        store4((all_wq * all_wq) / all_qq, merit); // the larger, the smaller the error
        for (int i = 0; i < 4; ++i) {
            if (!(merit[i] > most)) continue;
            most = merit[i];
            *best = inverse[i];
            *scale = wq[i] / qq[i];
        }
    }
}

} // namespace

float fit_group(const float* x, Q4Search search, std::byte* nibbles) {
    float max = max_magnitude(x, weight_group);
    if (!(max > 0.0f)) {
        for (int j = 0; j < 16; ++j)
            nibbles[j] = std::byte{0x88};
        return 0.0f;
    }
    float first = *std::find_if(x, x + weight_group, [&](float v) { return std::fabs(v) == max; });
    float after = 1.0f;
    float lifted[weight_group];
    if (max < tiny || max > huge) {
        const float before = max < tiny ? lift : 1.0f / lift;
        after = 1.0f / before;
        std::transform(x, x + weight_group, lifted, [&](float v) { return v * before; });
        x = lifted;
        max *= before;
        first *= before;
    }

    float inverse = 0.0f, scale = 0.0f;
    (search != nullptr ? search : search_scale)(x, first, max, &inverse, &scale);
    std::int32_t q[weight_group];
    for (std::size_t k = 0; k < weight_group; k += 4)
        store_integers(rounded(load4(x + k), all4(inverse)) + all4(8.0f), q + k);
    pack(q, nibbles);
    return scale * after;
}

void encode_q8(const float* source, std::uint64_t rows, std::uint64_t cols, const EncodeOptions&,
               std::byte* data, std::byte* scales) {
    for (std::uint64_t r = 0; r < rows; ++r) {
        const float* x = source + r * cols;
        const float max = row_magnitude(x, cols);
        const float before = max < tiny ? lift : 1.0f;
        round_row(x, cols, before, max > 0.0f ? 127.0f / (max * before) : 0.0f, data + r * cols);
        const float scale = max / 127.0f;
        std::memcpy(scales + 4 * r, &scale, 4);
    }
}

void decode_q8(const std::byte* data, const std::byte* scales, std::uint64_t rows,
               std::uint64_t cols, float* target) {
    for (std::uint64_t r = 0; r < rows; ++r) {
        float scale;
        std::memcpy(&scale, scales + 4 * r, 4);
        for (std::uint64_t i = r * cols; i < (r + 1) * cols; ++i)
            target[i] = static_cast<float>(static_cast<std::int8_t>(data[i])) * scale;
    }
}

void encode_q4(const float* source, std::uint64_t rows, std::uint64_t cols,
               const EncodeOptions& options, std::byte* data, std::byte* scales) {
    for (std::uint64_t g = 0; g < rows * cols / weight_group; ++g) {
        const float* x = source + g * weight_group;
        const float scale = options.fit ? fit_group(x, options.search, data + g * 16)
                                        : plain_group(x, data + g * 16);
        std::memcpy(scales + 4 * g, &scale, 4);
    }
}

void decode_q4(const std::byte* data, const std::byte* scales, std::uint64_t rows,
               std::uint64_t cols, float* target) {
    for (std::uint64_t g = 0; g < rows * cols / weight_group; ++g) {
        float scale;
        std::memcpy(&scale, scales + 4 * g, 4);
        for (std::uint64_t j = 0; j < 16; ++j) {
            const int byte = static_cast<int>(data[g * 16 + j]);
            target[g * weight_group + j] = static_cast<float>((byte & 15) - 8) * scale;
            target[g * weight_group + j + 16] = static_cast<float>((byte >> 4) - 8) * scale;
        }
    }
}

} // namespace mnm
