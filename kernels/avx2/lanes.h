// SPDX-License-Identifier: MIT
// Sixteen float lanes as two ymm registers, the activation quantiser, and the float kernels on
// them.
#pragma once

#include "kernels/table.h"

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace mnm::kernels {
namespace {

struct Lanes {
    __m256 low, high;
};

constexpr size_t f32_rows = 4, f32_tokens = 1, score_vectors = 2, value_vectors = 2;

Lanes load(const float* p) noexcept {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
Lanes load_stored(const uint16_t* p) noexcept {
    const auto* halves = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
}
Lanes load_stored(const int8_t* p) noexcept {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
void fetch(const void* p) noexcept {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
void store(float* p, Lanes a) noexcept {
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + 8, a.high);
}
Lanes splat(float a) noexcept {
    return {_mm256_set1_ps(a), _mm256_set1_ps(a)};
}
Lanes add(Lanes a, Lanes b) noexcept {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
Lanes sub(Lanes a, Lanes b) noexcept {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
Lanes mul(Lanes a, Lanes b) noexcept {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
Lanes div(Lanes a, Lanes b) noexcept {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
Lanes fused(Lanes a, Lanes b, Lanes c) noexcept {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
float fused_1(float a, float b, float c) noexcept {
    return fmaf(a, b, c);
}
Lanes larger(Lanes a, Lanes b) noexcept {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
Lanes smaller(Lanes a, Lanes b) noexcept {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

__m256 two_to_the_8(__m256 shifted) noexcept {
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(n, _mm256_set1_epi32(0x3F800000)));
}
Lanes two_to_the(Lanes shifted) noexcept {
    return {two_to_the_8(shifted.low), two_to_the_8(shifted.high)};
}

__m256 turned_8(__m256 x, __m256 cos_sin) noexcept {
    const __m256 s = _mm256_mul_ps(_mm256_permute_ps(x, 0xB1), _mm256_movehdup_ps(cos_sin));
    return _mm256_fmaddsub_ps(x, _mm256_moveldup_ps(cos_sin), s);
}
Lanes turned(Lanes x, Lanes cos_sin) noexcept {
    return {turned_8(x.low, cos_sin.low), turned_8(x.high, cos_sin.high)};
}

/// Sixteen registers are too few to hold more.
Lanes held(Lanes x) noexcept {
    return x;
}

Lanes repeated(const float* p) noexcept {
    const __m256 twice = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(p));
    return {twice, twice};
}
__m256 quarter_sums_8(__m256 x) noexcept {
    const __m256 pairs = _mm256_add_ps(x, _mm256_permute_ps(x, 0xB1));
    return _mm256_add_ps(pairs, _mm256_permute_ps(pairs, 0x4E));
}
Lanes quarter_sums(Lanes x) noexcept {
    return {quarter_sums_8(x.low), quarter_sums_8(x.high)};
}
Lanes clamped(Lanes x, float low, float high) noexcept {
    return smaller(larger(x, splat(low)), splat(high));
}

Lanes zero_below(Lanes x, float limit, Lanes y) noexcept {
    const __m256 bound = _mm256_set1_ps(limit);
    return {_mm256_and_ps(_mm256_cmp_ps(x.low, bound, _CMP_NLT_UQ), y.low),
            _mm256_and_ps(_mm256_cmp_ps(x.high, bound, _CMP_NLT_UQ), y.high)};
}

Lanes load_some(const float* p, size_t n, float fill) noexcept {
    if (n >= lanes) return load(p);
    float padded[lanes];
    for (size_t i = 0; i < lanes; ++i)
        padded[i] = i < n ? p[i] : fill;
    return load(padded);
}

/// Lanes 0..3 after the first two steps of the fold.
__m128 fold_add_to_4(Lanes a) noexcept {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}

float fold_add(Lanes a) noexcept {
    const __m128 four = fold_add_to_4(a);
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

float fold_max(Lanes a) noexcept {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// Eight floats times factor, rounded to even.
__m256i rounded(const float* x, __m256 factor) noexcept {
    const __m256 magic = _mm256_set1_ps(12582912.0f);
    const __m256 shifted = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(x), factor), magic);
    return _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(magic));
}

void quantize(const float* x, size_t n, int8_t* q, float* scale, int32_t* sum) noexcept {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (size_t g = 0; g < n / group; ++g, x += group, q += group) {
        const Lanes a = load(x), b = load(x + lanes);
        const Lanes tops = {
            _mm256_max_ps(_mm256_and_ps(a.low, magnitude), _mm256_and_ps(b.low, magnitude)),
            _mm256_max_ps(_mm256_and_ps(a.high, magnitude), _mm256_and_ps(b.high, magnitude))};
        const float largest = fold_max(tops);
        const float inverse = 127.0f / largest;
        const bool vanishes = !(inverse <= 3.402823466e+38f);
        const __m256 factor = _mm256_set1_ps(vanishes ? 0.0f : inverse);
        const __m256i low = _mm256_packs_epi32(rounded(x, factor), rounded(x + 8, factor));
        const __m256i high = _mm256_packs_epi32(rounded(x + 16, factor), rounded(x + 24, factor));
        const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), bytes);
        scale[g] = vanishes ? 0.0f : largest / 127.0f;

        const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
        const __m256i eight = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        const __m128i four =
            _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
        const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        sum[g] = _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_srli_epi64(two, 32)));
    }
}

uint64_t sum_words(const uint64_t* words, size_t n) noexcept {
    __m256i sums[8];
    for (__m256i& sum : sums)
        sum = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 32) {
        const auto* source = reinterpret_cast<const __m256i*>(words + i);
        for (size_t j = 0; j < 8; ++j)
            sums[j] = _mm256_add_epi64(sums[j], _mm256_loadu_si256(source + j));
    }
    for (size_t j = 1; j < 8; ++j)
        sums[0] = _mm256_add_epi64(sums[0], sums[j]);
    uint64_t four[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(four), sums[0]);
    return four[0] + four[1] + four[2] + four[3];
}

#include "kernels/src/float_kernels.h"

} // namespace
} // namespace mnm::kernels
