// SPDX-License-Identifier: MIT
// Integer products on zmm registers, one token: decoding.
//
// Sixteen rows are read side by side where they are mapped; each register of a row holds partial
// sums of two (q8) or four (q4) groups, and a tree of transposing adds turns sixteen such registers
// into one register of sixteen row sums for each group. vpdpbusd multiplies unsigned by signed: q8
// weights are taken with 128 added, q4 nibbles as they are stored with 8 added, and 128 or 8 times
// the sum of the group's activations is subtracted.
#pragma once

#include "kernels/avx512_vnni/lanes.h"
#include "kernels/avx512_vnni/rows.h"

namespace mnm::kernels {
namespace {

/// How many rows ahead the weights are fetched: 12 KB or more in the models this is for.
constexpr size_t q8_rows_ahead = 16, q4_rows_ahead = 32;

/// Sixteen registers of 4 x 4 partial sums: adds within each 128-bit lane, leaving rows 4i..4i+3 in
/// out[i].
void fold_lanes(const __m512i* s, __m512i* out) noexcept {
    for (int i = 0; i < 4; ++i) {
        const __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(s[4 * i], s[4 * i + 1]),
                                           _mm512_unpackhi_epi32(s[4 * i], s[4 * i + 1]));
        const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(s[4 * i + 2], s[4 * i + 3]),
                                           _mm512_unpackhi_epi32(s[4 * i + 2], s[4 * i + 3]));
        out[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
}

/// Adds one group to the sixteen accumulators: dot - offset, one fused multiply-add.
__m512 add_group(__m512 acc, __m512i dot, int32_t offset, __m512 factor) noexcept {
    const __m512i exact = _mm512_sub_epi32(dot, _mm512_set1_epi32(offset));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), factor, acc);
}

void q8_token(const int8_t* w, const float* scale, size_t begin, size_t end, size_t cols,
              const int8_t* x, const float* xscale, const int32_t* xsum, float* y,
              bool accumulate) noexcept {
    const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
    for (size_t row = begin; row < end; row += row_block) {
        const size_t rows = end - row < row_block ? end - row : row_block;
        const int8_t* source[row_block];
        for (size_t r = 0; r < row_block; ++r) {
            source[r] = w + (row + (r < rows ? r : rows - 1)) * cols;
        }
        const size_t ahead = q8_rows_ahead * cols;
        __m512 acc = _mm512_setzero_ps();
        for (size_t c = 0; c < cols; c += 2 * group) {
            const bool whole = cols - c >= 2 * group;
            const __mmask64 mask = whole ? ~__mmask64{0} : 0xFFFFFFFFU;
            const __m512i a = load_bytes(x + c, mask);
            __m512i s[row_block], quarter[4];
            for (size_t r = 0; r < row_block; ++r) {
                _mm_prefetch(reinterpret_cast<const char*>(source[r] + c + ahead), _MM_HINT_T0);
                const __m512i bytes = _mm512_xor_si512(load_bytes(source[r] + c, mask), flip);
                s[r] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), bytes, a);
            }
            fold_lanes(s, quarter);
            const __m512i ab = _mm512_add_epi32(_mm512_shuffle_i32x4(quarter[0], quarter[1], 0x88),
                                                _mm512_shuffle_i32x4(quarter[0], quarter[1], 0xDD));
            const __m512i cd = _mm512_add_epi32(_mm512_shuffle_i32x4(quarter[2], quarter[3], 0x88),
                                                _mm512_shuffle_i32x4(quarter[2], quarter[3], 0xDD));
            const size_t g = c / group;
            acc =
                add_group(acc, _mm512_shuffle_i32x4(ab, cd, 0x88), 128 * xsum[g], splat(xscale[g]));
            if (whole) {
                acc = add_group(acc, _mm512_shuffle_i32x4(ab, cd, 0xDD), 128 * xsum[g + 1],
                                splat(xscale[g + 1]));
            }
        }
        const __m512 scales = load_some(scale + row, rows, 0.0f);
        put(y + row, _mm512_mul_ps(acc, scales), rows, accumulate);
    }
}

/// Up to four groups from column group g on; Whole: exactly four.
template <bool Whole>
__m512 q4_groups(const uint8_t* const* source, const float* const* scales, size_t g, size_t count,
                 size_t ahead, const int8_t* x, const float* xscale, const int32_t* xsum,
                 __m512 acc) noexcept {
    const __m512i nibble = _mm512_set1_epi8(15);
    const __mmask64 bytes = Whole ? ~__mmask64{0} : (__mmask64{1} << (16 * count)) - 1;
    const __mmask64 first = Whole || count > 1 ? ~__mmask64{0} : 0xFFFFFFFFU;
    const __mmask64 second = Whole ? ~__mmask64{0} : count == 3 ? 0xFFFFFFFFU : 0;
    const __m512i x0 = load_bytes(x + g * group, first);
    const __m512i x1 = load_bytes(x + (g + 2) * group, second);
    const __m512i low = _mm512_shuffle_i64x2(x0, x1, 0x88);  // columns 0..15 of each group
    const __m512i high = _mm512_shuffle_i64x2(x0, x1, 0xDD); // columns 16..31
    __m512i s[row_block], quarter[4];
    for (size_t r = 0; r < row_block; ++r) {
        const uint8_t* p = source[r] + g * (group / 2);
        _mm_prefetch(reinterpret_cast<const char*>(p + ahead), _MM_HINT_T0);
        const __m512i pairs = load_bytes(p, bytes);
        s[r] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_and_si512(pairs, nibble), low);
        s[r] =
            _mm512_dpbusd_epi32(s[r], _mm512_and_si512(_mm512_srli_epi16(pairs, 4), nibble), high);
    }
    fold_lanes(s, quarter);
    const __m512i ab01 = _mm512_shuffle_i32x4(quarter[0], quarter[1], 0x44);
    const __m512i cd01 = _mm512_shuffle_i32x4(quarter[2], quarter[3], 0x44);
    const __m512i ab23 = _mm512_shuffle_i32x4(quarter[0], quarter[1], 0xEE);
    const __m512i cd23 = _mm512_shuffle_i32x4(quarter[2], quarter[3], 0xEE);
    const __m512i dots[4] = {
        _mm512_shuffle_i32x4(ab01, cd01, 0x88), _mm512_shuffle_i32x4(ab01, cd01, 0xDD),
        _mm512_shuffle_i32x4(ab23, cd23, 0x88), _mm512_shuffle_i32x4(ab23, cd23, 0xDD)};
    __m512 weight_scales[4];
    load_q4_scales(scales, g, Whole ? 4 : count, weight_scales);
    for (size_t i = 0; i < (Whole ? 4 : count); ++i) {
        acc = add_group(acc, dots[i], 8 * xsum[g + i],
                        _mm512_mul_ps(weight_scales[i], splat(xscale[g + i])));
    }
    return acc;
}

void q4_token(const uint8_t* w, const float* scale, size_t begin, size_t end, size_t cols,
              const int8_t* x, const float* xscale, const int32_t* xsum, float* y,
              bool accumulate) noexcept {
    const size_t groups = cols / group, row_bytes = cols / 2;
    for (size_t row = begin; row < end; row += row_block) {
        const size_t rows = end - row < row_block ? end - row : row_block;
        const uint8_t* source[row_block];
        const float* scales[row_block];
        for (size_t r = 0; r < row_block; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            source[r] = w + index * row_bytes;
            scales[r] = scale + index * groups;
        }
        const size_t ahead = q4_rows_ahead * row_bytes;
        __m512 acc = _mm512_setzero_ps();
        size_t g = 0;
        for (; g + 4 <= groups; g += 4) {
            // Sixteen rows of four scales are four cache lines of those ahead.
            const float* scales_ahead = scale + (row + q4_rows_ahead) * groups + g * row_block;
            for (size_t line = 0; line < 4; ++line) {
                _mm_prefetch(reinterpret_cast<const char*>(scales_ahead + 16 * line), _MM_HINT_T0);
            }
            acc = q4_groups<true>(source, scales, g, 4, ahead, x, xscale, xsum, acc);
        }
        if (g < groups) {
            acc = q4_groups<false>(source, scales, g, groups - g, ahead, x, xscale, xsum, acc);
        }
        put(y + row, acc, rows, accumulate);
    }
}

} // namespace
} // namespace mnm::kernels
