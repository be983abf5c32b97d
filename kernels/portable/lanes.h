// SPDX-License-Identifier: MIT
// Sixteen float lanes as four 128-bit vectors, the activation quantiser, and the float kernels on
// them.
#pragma once

#include "kernels/table.h"

#include <math.h>
#include <simde/x86/fma.h>
#include <simde/x86/sse4.1.h>
#include <stddef.h>
#include <stdint.h>

namespace mnm::kernels {
namespace {

using Vector = simde__m128;

struct Lanes {
    Vector v[4];
};

constexpr size_t f32_rows = 2, f32_tokens = 1, score_vectors = 1, value_vectors = 1;

#if defined(SIMDE_X86_FMA_NATIVE) || defined(SIMDE_ARM_NEON_A64V8_NATIVE)
Vector fused_4(Vector a, Vector b, Vector c) noexcept {
    return simde_mm_fmadd_ps(a, b, c);
}
#else
/// Two fused multiply-adds in double, rounded to odd so that the rounding to float that follows is
/// the only one that counts (see `fused` of the reference level).
simde__m128d fused_to_odd(simde__m128d a, simde__m128d b, simde__m128d c) noexcept {
    const simde__m128d product = simde_mm_mul_pd(a, b);
    const simde__m128d sum = simde_mm_add_pd(product, c);
    const simde__m128d part = simde_mm_sub_pd(sum, product);
    const simde__m128d error = simde_mm_add_pd(simde_mm_sub_pd(product, simde_mm_sub_pd(sum, part)),
                                               simde_mm_sub_pd(c, part));
    const simde__m128d zero = simde_mm_setzero_pd();
    const simde__m128i inexact = simde_mm_castpd_si128(
        simde_mm_or_pd(simde_mm_cmplt_pd(error, zero), simde_mm_cmpgt_pd(error, zero)));
    const simde__m128i bits = simde_mm_castpd_si128(sum);
    const simde__m128i one = simde_mm_set1_epi64x(1);
    const simde__m128i last = simde_mm_and_si128(bits, one);
    const simde__m128i even = simde_mm_shuffle_epi32(
        simde_mm_cmpeq_epi32(last, simde_mm_setzero_si128()), SIMDE_MM_SHUFFLE(2, 2, 0, 0));
    // +1 where the error has the sign of the sum, -1 elsewhere.
    const simde__m128i opposite = simde_mm_shuffle_epi32(
        simde_mm_srai_epi32(simde_mm_castpd_si128(simde_mm_xor_pd(error, sum)), 31),
        SIMDE_MM_SHUFFLE(3, 3, 1, 1));
    const simde__m128i step = simde_mm_or_si128(opposite, one);
    const simde__m128i change = simde_mm_and_si128(step, simde_mm_and_si128(inexact, even));
    return simde_mm_castsi128_pd(simde_mm_add_epi64(bits, change));
}

/// A sum in double that rounding twice might spoil: it lies between two floats, or below them all,
/// where they stand less close.
simde__m128d doubtful(simde__m128d sum) noexcept {
    const simde__m128i bits = simde_mm_castpd_si128(sum);
    const simde__m128i rest = simde_mm_and_si128(bits, simde_mm_set1_epi64x(0x1FFFFFFF));
    const simde__m128i between = simde_mm_cmpeq_epi64(rest, simde_mm_set1_epi64x(0x10000000));
    const simde__m128d size =
        simde_mm_castsi128_pd(simde_mm_and_si128(bits, simde_mm_set1_epi64x(0x7FFFFFFFFFFFFFFF)));
    return simde_mm_or_pd(simde_mm_castsi128_pd(between),
                          simde_mm_cmplt_pd(size, simde_mm_set1_pd(0x1p-126)));
}

Vector fused_4(Vector a, Vector b, Vector c) noexcept {
    const simde__m128d a0 = simde_mm_cvtps_pd(a), a1 = simde_mm_cvtps_pd(simde_mm_movehl_ps(a, a));
    const simde__m128d b0 = simde_mm_cvtps_pd(b), b1 = simde_mm_cvtps_pd(simde_mm_movehl_ps(b, b));
    const simde__m128d c0 = simde_mm_cvtps_pd(c), c1 = simde_mm_cvtps_pd(simde_mm_movehl_ps(c, c));
    simde__m128d low = simde_mm_add_pd(simde_mm_mul_pd(a0, b0), c0);
    simde__m128d high = simde_mm_add_pd(simde_mm_mul_pd(a1, b1), c1);
    if (simde_mm_movemask_pd(simde_mm_or_pd(doubtful(low), doubtful(high))) != 0) {
        low = fused_to_odd(a0, b0, c0);
        high = fused_to_odd(a1, b1, c1);
    }
    return simde_mm_movelh_ps(simde_mm_cvtpd_ps(low), simde_mm_cvtpd_ps(high));
}
#endif

float fused_1(float a, float b, float c) noexcept {
    return simde_mm_cvtss_f32(
        fused_4(simde_mm_set1_ps(a), simde_mm_set1_ps(b), simde_mm_set1_ps(c)));
}

Lanes load(const float* p) noexcept {
    return {{simde_mm_loadu_ps(p), simde_mm_loadu_ps(p + 4), simde_mm_loadu_ps(p + 8),
             simde_mm_loadu_ps(p + 12)}};
}
/// Exact: a half float's bits, moved, are the number times 2^-112, and no half here is infinite.
Lanes load_stored(const uint16_t* p) noexcept {
    Lanes a;
    for (size_t i = 0; i < 4; ++i) {
        const simde__m128i half = simde_mm_cvtepu16_epi32(
            simde_mm_loadl_epi64(reinterpret_cast<const simde__m128i*>(p + 4 * i)));
        const simde__m128i sign =
            simde_mm_slli_epi32(simde_mm_and_si128(half, simde_mm_set1_epi32(0x8000)), 16);
        const simde__m128i rest =
            simde_mm_slli_epi32(simde_mm_and_si128(half, simde_mm_set1_epi32(0x7FFF)), 13);
        a.v[i] =
            simde_mm_or_ps(simde_mm_mul_ps(simde_mm_castsi128_ps(rest), simde_mm_set1_ps(0x1p112f)),
                           simde_mm_castsi128_ps(sign));
    }
    return a;
}
Lanes load_stored(const int8_t* p) noexcept {
    Lanes a;
    simde__m128i bytes = simde_mm_loadu_si128(p);
    for (size_t i = 0; i < 4; ++i, bytes = simde_mm_srli_si128(bytes, 4))
        a.v[i] = simde_mm_cvtepi32_ps(simde_mm_cvtepi8_epi32(bytes));
    return a;
}
void fetch(const void* p) noexcept {
    simde_mm_prefetch(static_cast<const char*>(p), SIMDE_MM_HINT_T0);
}
void store(float* p, Lanes a) noexcept {
    for (size_t i = 0; i < 4; ++i)
        simde_mm_storeu_ps(p + 4 * i, a.v[i]);
}
Lanes splat(float a) noexcept {
    const Vector v = simde_mm_set1_ps(a);
    return {{v, v, v, v}};
}

template <class Operation>
Lanes each(Lanes a, Lanes b, const Operation& operation) noexcept {
    for (size_t i = 0; i < 4; ++i)
        a.v[i] = operation(a.v[i], b.v[i]);
    return a;
}
Lanes add(Lanes a, Lanes b) noexcept {
    return each(a, b, [](Vector x, Vector y) { return simde_mm_add_ps(x, y); });
}
Lanes sub(Lanes a, Lanes b) noexcept {
    return each(a, b, [](Vector x, Vector y) { return simde_mm_sub_ps(x, y); });
}
Lanes mul(Lanes a, Lanes b) noexcept {
    return each(a, b, [](Vector x, Vector y) { return simde_mm_mul_ps(x, y); });
}
Lanes div(Lanes a, Lanes b) noexcept {
    return each(a, b, [](Vector x, Vector y) { return simde_mm_div_ps(x, y); });
}
Lanes fused(Lanes a, Lanes b, Lanes c) noexcept {
    for (size_t i = 0; i < 4; ++i)
        a.v[i] = fused_4(a.v[i], b.v[i], c.v[i]);
    return a;
}

/// a > b ? a : b without leaving the choice of a NaN or a zero's sign to the platform's own
/// maximum.
Vector choose(Vector mask, Vector a, Vector b) noexcept {
    return simde_mm_or_ps(simde_mm_and_ps(mask, a), simde_mm_andnot_ps(mask, b));
}
Vector larger_4(Vector a, Vector b) noexcept {
    return choose(simde_mm_cmpgt_ps(a, b), a, b);
}
Lanes larger(Lanes a, Lanes b) noexcept {
    return each(a, b, larger_4);
}
Lanes smaller(Lanes a, Lanes b) noexcept {
    return each(a, b, [](Vector x, Vector y) { return choose(simde_mm_cmplt_ps(x, y), x, y); });
}

Lanes two_to_the(Lanes shifted) noexcept {
    for (Vector& v : shifted.v) {
        const simde__m128i n = simde_mm_slli_epi32(simde_mm_castps_si128(v), 23);
        v = simde_mm_castsi128_ps(simde_mm_add_epi32(n, simde_mm_set1_epi32(0x3F800000)));
    }
    return shifted;
}

Lanes turned(Lanes x, Lanes cos_sin) noexcept {
    const Vector minus = simde_mm_castsi128_ps(simde_mm_set_epi32(0, INT32_MIN, 0, INT32_MIN));
    return each(x, cos_sin, [minus](Vector v, Vector cs) {
        const Vector c = simde_mm_shuffle_ps(cs, cs, SIMDE_MM_SHUFFLE(2, 2, 0, 0));
        const Vector s = simde_mm_shuffle_ps(cs, cs, SIMDE_MM_SHUFFLE(3, 3, 1, 1));
        const Vector other = simde_mm_shuffle_ps(v, v, SIMDE_MM_SHUFFLE(2, 3, 0, 1));
        return fused_4(v, c, simde_mm_xor_ps(simde_mm_mul_ps(other, s), minus));
    });
}

Lanes held(Lanes x) noexcept {
    return x;
}

Lanes repeated(const float* p) noexcept {
    const Vector v = simde_mm_loadu_ps(p);
    return {{v, v, v, v}};
}
Lanes quarter_sums(Lanes x) noexcept {
    for (Vector& v : x.v) {
        v = simde_mm_add_ps(v, simde_mm_shuffle_ps(v, v, SIMDE_MM_SHUFFLE(2, 3, 0, 1)));
        v = simde_mm_add_ps(v, simde_mm_shuffle_ps(v, v, SIMDE_MM_SHUFFLE(1, 0, 3, 2)));
    }
    return x;
}
Lanes clamped(Lanes x, float low, float high) noexcept {
    for (Vector& v : x.v)
        v = simde_mm_min_ps(simde_mm_max_ps(v, simde_mm_set1_ps(low)), simde_mm_set1_ps(high));
    return x;
}

Lanes zero_below(Lanes x, float limit, Lanes y) noexcept {
    const Vector bound = simde_mm_set1_ps(limit);
    return each(x, y, [bound](Vector a, Vector b) {
        return simde_mm_andnot_ps(simde_mm_cmplt_ps(a, bound), b);
    });
}

Lanes load_some(const float* p, size_t n, float fill) noexcept {
    if (n >= lanes) return load(p);
    float padded[lanes];
    for (size_t i = 0; i < lanes; ++i)
        padded[i] = i < n ? p[i] : fill;
    return load(padded);
}

/// Lanes 0..3 after the first two steps of the fold.
Vector fold_add_to_4(Lanes a) noexcept {
    return simde_mm_add_ps(simde_mm_add_ps(a.v[0], a.v[2]), simde_mm_add_ps(a.v[1], a.v[3]));
}

float fold_add(Lanes a) noexcept {
    float four[4];
    simde_mm_storeu_ps(four, fold_add_to_4(a));
    return (four[0] + four[2]) + (four[1] + four[3]);
}

float fold_max(Lanes a) noexcept {
    float four[4];
    simde_mm_storeu_ps(four, larger_4(larger_4(a.v[0], a.v[1]), larger_4(a.v[2], a.v[3])));
    const float low = four[0] > four[1] ? four[0] : four[1];
    const float high = four[2] > four[3] ? four[2] : four[3];
    return low > high ? low : high;
}

void quantize(const float* x, size_t n, int8_t* q, float* scale, int32_t* sum) noexcept {
    const Vector magnitude = simde_mm_castsi128_ps(simde_mm_set1_epi32(0x7FFFFFFF));
    const Vector magic = simde_mm_set1_ps(12582912.0f);
    for (size_t g = 0; g < n / group; ++g, x += group, q += group) {
        Vector top = simde_mm_setzero_ps();
        for (size_t i = 0; i < group; i += 4) {
            top = larger_4(simde_mm_and_ps(simde_mm_loadu_ps(x + i), magnitude), top);
        }
        float four[4];
        simde_mm_storeu_ps(four, top);
        float largest = four[0];
        for (size_t i = 1; i < 4; ++i)
            largest = four[i] > largest ? four[i] : largest;
        const float inverse = 127.0f / largest;
        const bool vanishes = !(inverse <= 3.402823466e+38f);
        const Vector factor = simde_mm_set1_ps(vanishes ? 0.0f : inverse);
        simde__m128i total = simde_mm_setzero_si128();
        for (size_t i = 0; i < group; i += 16) {
            simde__m128i part[4];
            for (size_t j = 0; j < 4; ++j) {
                const Vector v = simde_mm_loadu_ps(x + i + 4 * j);
                const Vector shifted = simde_mm_add_ps(simde_mm_mul_ps(v, factor), magic);
                part[j] = simde_mm_sub_epi32(simde_mm_castps_si128(shifted),
                                             simde_mm_castps_si128(magic));
                total = simde_mm_add_epi32(total, part[j]);
            }
            simde_mm_storeu_si128(q + i,
                                  simde_mm_packs_epi16(simde_mm_packs_epi32(part[0], part[1]),
                                                       simde_mm_packs_epi32(part[2], part[3])));
        }
        scale[g] = vanishes ? 0.0f : largest / 127.0f;
        int32_t sums[4];
        simde_mm_storeu_si128(sums, total);
        sum[g] = sums[0] + sums[1] + sums[2] + sums[3];
    }
}

#include "kernels/src/float_kernels.h"

} // namespace
} // namespace mnm::kernels
