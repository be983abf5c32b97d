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

constexpr size_t f32_rows = 4, f32_tokens = 4, score_vectors = 4, value_vectors = 4;

Lanes load(const float* p) noexcept {
    return _mm512_loadu_ps(p);
}
Lanes load_stored(const uint16_t* p) noexcept {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
Lanes load_stored(const int8_t* p) noexcept {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
void fetch(const void* p) noexcept {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
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

Lanes turned(Lanes x, Lanes cos_sin) noexcept {
    const __m512 c = _mm512_moveldup_ps(cos_sin);
    const __m512 s = _mm512_mul_ps(_mm512_permute_ps(x, 0xB1), _mm512_movehdup_ps(cos_sin));
    return _mm512_fmaddsub_ps(x, c, s);
}

/// GCC turns a register that is used thrice into three loads, and loads are what attention waits
/// for.
Lanes held(Lanes x) noexcept {
#ifdef __GNUC__
    __asm__("" : "+v"(x));
#endif
    return x;
}

Lanes repeated(const float* p) noexcept {
    return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}
Lanes quarter_sums(Lanes x) noexcept {
    const __m512 pairs = _mm512_add_ps(x, _mm512_permute_ps(x, 0xB1));
    return _mm512_add_ps(pairs, _mm512_permute_ps(pairs, 0x4E));
}
Lanes clamped(Lanes x, float low, float high) noexcept {
    return smaller(larger(x, splat(low)), splat(high));
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

float fold_max(Lanes a) noexcept {
    return _mm512_reduce_max_ps(a);
}

/// The largest of each of four vectors, in all lanes of its quarter.
Lanes quarter_maxima(const Lanes (&v)[4]) noexcept {
    const auto halves = [](Lanes a, Lanes b) {
        return larger(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    };
    const Lanes ab = halves(v[0], v[1]), cd = halves(v[2], v[3]);
    const Lanes four =
        larger(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
    const Lanes two = larger(four, _mm512_permute_ps(four, 0xB1));
    return larger(two, _mm512_permute_ps(two, 0x4E));
}

/// Two groups, times a factor each, rounded to even and put together as bytes.
__m512i rounded(const float* x, Lanes first, Lanes second) noexcept {
    const Lanes magic = splat(12582912.0f);
    const auto whole = [&](const float* p, Lanes factor) {
        const __m512i shifted = _mm512_castps_si512(add(mul(load(p), factor), magic));
        return _mm512_sub_epi32(shifted, _mm512_castps_si512(magic));
    };
    const __m512i a = _mm512_packs_epi32(whole(x, first), whole(x + 16, first));
    const __m512i b = _mm512_packs_epi32(whole(x + 32, second), whole(x + 48, second));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(a, b));
}

/// The first lane of each quarter.
__m512i of_quarters() noexcept {
    return _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/// Four groups side by side.
void quantize_four(const float* x, int8_t* q, float* scale, int32_t* sum) noexcept {
    Lanes tops[4];
    for (size_t g = 0; g < 4; ++g)
        tops[g] =
            larger(_mm512_abs_ps(load(x + g * group)), _mm512_abs_ps(load(x + g * group + lanes)));
    const Lanes largest = quarter_maxima(tops), inverse = div(splat(127.0f), largest);
    const __mmask16 kept = _mm512_cmp_ps_mask(inverse, splat(3.402823466e+38f), _CMP_LE_OQ);
    const Lanes factor = _mm512_maskz_mov_ps(kept, inverse);
    const Lanes scales = _mm512_maskz_div_ps(kept, largest, splat(127.0f));
    const __m512i ab = rounded(x, _mm512_shuffle_f32x4(factor, factor, 0x00),
                               _mm512_shuffle_f32x4(factor, factor, 0x55));
    const __m512i cd = rounded(x + 2 * group, _mm512_shuffle_f32x4(factor, factor, 0xAA),
                               _mm512_shuffle_f32x4(factor, factor, 0xFF));
    _mm512_storeu_si512(q, ab);
    _mm512_storeu_si512(q + 2 * group, cd);
    const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();
    const __m512i sums_ab = _mm512_dpbusd_epi32(zero, ones, ab);
    const __m512i sums_cd = _mm512_dpbusd_epi32(zero, ones, cd);
    const __m512i four = _mm512_add_epi32(_mm512_shuffle_i32x4(sums_ab, sums_cd, 0x88),
                                          _mm512_shuffle_i32x4(sums_ab, sums_cd, 0xDD));
    const __m512i two = _mm512_add_epi32(four, _mm512_shuffle_epi32(four, _MM_PERM_CDAB));
    const __m512i one = _mm512_add_epi32(two, _mm512_shuffle_epi32(two, _MM_PERM_BADC));
    _mm_storeu_ps(scale, _mm512_castps512_ps128(_mm512_permutexvar_ps(of_quarters(), scales)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sum),
                     _mm512_castsi512_si128(_mm512_permutexvar_epi32(of_quarters(), one)));
}

void quantize(const float* x, size_t n, int8_t* q, float* scale, int32_t* sum) noexcept {
    const __m512 magic = splat(12582912.0f);
    size_t g = 0;
    for (; g + 4 <= n / group; g += 4)
        quantize_four(x + g * group, q + g * group, scale + g, sum + g);
    for (x += g * group, q += g * group; g < n / group; ++g, x += group, q += group) {
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

uint64_t sum_words(const uint64_t* words, size_t n) noexcept {
    __m512i sums[8];
    for (__m512i& sum : sums)
        sum = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(words + i + 1024), _MM_HINT_T0);
        for (size_t j = 0; j < 8; ++j)
            sums[j] = _mm512_add_epi64(sums[j], _mm512_loadu_si512(words + i + 8 * j));
    }
    for (size_t j = 1; j < 8; ++j)
        sums[0] = _mm512_add_epi64(sums[0], sums[j]);
    return static_cast<uint64_t>(_mm512_reduce_add_epi64(sums[0]));
}

#include "kernels/src/float_kernels.h"

} // namespace
} // namespace mnm::kernels
