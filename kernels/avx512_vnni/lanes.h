// SPDX-License-Identifier: MIT
// Sixteen float lanes as one zmm register, the activation quantiser, and the float kernels on them.
#pragma once

#include "kernels/table.h"

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace mnm::kernels {
namespace {

using Lanes = __m512;

constexpr size_t f32_rows = 4, f32_tokens = 4, value_lanes = 4;

Lanes load(const float* p) noexcept {
    return _mm512_loadu_ps(p);
}
void store(float* p, Lanes a) noexcept {
    _mm512_storeu_ps(p, a);
}
Lanes splat(float a) noexcept {
    return _mm512_set1_ps(a);
}
Lanes add(Lanes a, Lanes b) noexcept {
    return _mm512_add_ps(a, b);
}
Lanes sub(Lanes a, Lanes b) noexcept {
    return _mm512_sub_ps(a, b);
}
Lanes mul(Lanes a, Lanes b) noexcept {
    return _mm512_mul_ps(a, b);
}
Lanes div(Lanes a, Lanes b) noexcept {
    return _mm512_div_ps(a, b);
}
Lanes fused(Lanes a, Lanes b, Lanes c) noexcept {
    return _mm512_fmadd_ps(a, b, c);
}
float fused_1(float a, float b, float c) noexcept {
    return fmaf(a, b, c);
}
Lanes larger(Lanes a, Lanes b) noexcept {
    return _mm512_max_ps(a, b);
}
Lanes smaller(Lanes a, Lanes b) noexcept {
    return _mm512_min_ps(a, b);
}

Lanes two_to_the(Lanes shifted) noexcept {
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(n, _mm512_set1_epi32(0x3F800000)));
}

Lanes zero_below(Lanes x, float limit, Lanes y) noexcept {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, splat(limit), _CMP_NLT_UQ), y);
}

Lanes load_some(const float* p, size_t n, float fill) noexcept {
    if (n >= lanes) return load(p);
    return _mm512_mask_loadu_ps(splat(fill), static_cast<__mmask16>((1U << n) - 1), p);
}

/// Lanes 0..3 after the first two steps of the fold.
__m128 fold_add_to_4(Lanes a) noexcept {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}

float fold_add(Lanes a) noexcept {
    const __m128 four = fold_add_to_4(a);
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

void fold_add_4(Lanes a, Lanes b, Lanes c, Lanes d, float* out) noexcept {
    const __m128 a4 = fold_add_to_4(a), b4 = fold_add_to_4(b);
    const __m128 c4 = fold_add_to_4(c), d4 = fold_add_to_4(d);
    const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a4, b4), _mm_unpackhi_ps(a4, b4));
    const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c4, d4), _mm_unpackhi_ps(c4, d4));
    _mm_storeu_ps(out, _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab)));
}

float fold_max(Lanes a) noexcept {
    return _mm512_reduce_max_ps(a);
}

void quantize(const float* x, size_t n, int8_t* q, float* scale, int32_t* sum) noexcept {
    const __m512 magic = splat(12582912.0f);
    for (size_t g = 0; g < n / group; ++g, x += group, q += group) {
        const __m512 a = load(x), b = load(x + lanes);
        const float largest = fold_max(larger(_mm512_abs_ps(a), _mm512_abs_ps(b)));
        const float inverse = 127.0f / largest;
        const bool vanishes = !(inverse <= 3.402823466e+38f);
        const __m512 factor = splat(vanishes ? 0.0f : inverse);
        // The sum's low byte is the rounded number: q = round(x * inverse) as in the reference.
        const __m128i low = _mm512_cvtepi32_epi8(_mm512_castps_si512(add(mul(a, factor), magic)));
        const __m128i high = _mm512_cvtepi32_epi8(_mm512_castps_si512(add(mul(b, factor), magic)));
        const __m256i both = _mm256_set_m128i(high, low);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), both);
        scale[g] = vanishes ? 0.0f : largest / 127.0f;
        const __m256i eight =
            _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), both);
        sum[g] = _mm512_reduce_add_epi32(_mm512_zextsi256_si512(eight));
    }
}

#include "kernels/src/float_kernels.h"

} // namespace
} // namespace mnm::kernels
