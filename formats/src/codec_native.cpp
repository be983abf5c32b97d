// SPDX-License-Identifier: MIT
// q8 and q4 of the .mnm formats. The order of every float operation is part of the format.
#include "formats/src/codecs.h"
#include "formats/src/float4.h"

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

/// Each candidate for 1/scale, and what the rounding makes of it.
struct Fits {
    float inverse[candidate_count];
    float wq[candidate_count];    ///< sum of w q
    float qq[candidate_count];    ///< sum of q q
    float merit[candidate_count]; ///< wq^2 / qq: the larger, the smaller the error
};

/// Four candidates side by side, so that no step has to wait for one that was just begun.
void fit_candidates(const Float4 (&w)[8], float first, float max, Fits& fits) {
    for (std::size_t c = 0; c < candidate_count; c += 4) {
        const bool last = c + 4 == candidate_count;
        const float over[4] = {first, first, first, last ? max : first};
        const Float4 inverse = load4(candidates + c) / load4(over);
        store4(inverse, fits.inverse + c);
        Float4 wq[4], qq[4];
        for (int i = 0; i < 4; ++i) {
            const Float4 by = all4(fits.inverse[c + static_cast<std::size_t>(i)]);
            wq[i] = qq[i] = all4(0.0f);
            for (int k = 0; k < 8; ++k) {
                const Float4 q = rounded(w[k], by);
                wq[i] = wq[i] + w[k] * q;
                qq[i] = qq[i] + q * q;
            }
        }
        const Float4 wqs = sum4_each(wq[0], wq[1], wq[2], wq[3]);
        const Float4 qqs = sum4_each(qq[0], qq[1], qq[2], qq[3]);
        store4(wqs, fits.wq + c);
        store4(qqs, fits.qq + c);
        store4((wqs * wqs) / qqs, fits.merit + c);
    }
}

} // namespace

float fit_group(const float* x, std::byte* nibbles) {
    Float4 w[8];
    for (int k = 0; k < 8; ++k)
        w[k] = load4(x + 4 * k);
    float max = max_magnitude(x, weight_group);
    if (!(max > 0.0f)) {
        for (int j = 0; j < 16; ++j)
            nibbles[j] = std::byte{0x88};
        return 0.0f;
    }
    float first = 0.0f;
    for (std::uint64_t i = 0; i < weight_group; ++i)
        if (std::fabs(x[i]) == max) {
            first = x[i];
            break;
        }
    float after = 1.0f;
    if (max < tiny || max > huge) {
        const float before = max < tiny ? lift : 1.0f / lift;
        after = 1.0f / before;
        for (Float4& v : w)
            v = v * all4(before);
        max *= before;
        first *= before;
    }

    Fits fits;
    fit_candidates(w, first, max, fits);
    std::size_t best = 0;
    for (std::size_t c = 1; c < candidate_count; ++c)
        best = fits.merit[c] > fits.merit[best] ? c : best;

    std::int32_t q[weight_group];
    for (int k = 0; k < 8; ++k) {
        const Float4 biased = rounded(w[k], all4(fits.inverse[best])) + all4(8.0f);
        store_integers(biased, q + 4 * k);
    }
    pack(q, nibbles);
    return fits.wq[best] / fits.qq[best] * after;
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
        const float scale =
            options.fit ? fit_group(x, data + g * 16) : plain_group(x, data + g * 16);
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
