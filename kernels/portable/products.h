// SPDX-License-Identifier: MIT
// Integer products on 128-bit vectors: bytes widened to 16 bits, pairs of products added in 32,
// four rows side by side. The weights of four rows stay in the first cache level over all tokens.
#pragma once

#include "kernels/portable/lanes.h"

namespace mnm::kernels {
namespace {

constexpr size_t quad = 4;

simde__m128i load_bytes(const void* p) noexcept {
    return simde_mm_loadu_si128(p);
}

/// Sixteen bytes by sixteen bytes, signed, added to four sums. On x86 bytes are multiplied as they
/// are: |w| (as unsigned, so -128 is 128) by a with w's sign, whose pairs stay below 2^15.
simde__m128i dot_16(simde__m128i sums, simde__m128i w, simde__m128i a) noexcept {
#if defined(SIMDE_X86_SSSE3_NATIVE)
    const simde__m128i pairs =
        simde_mm_maddubs_epi16(simde_mm_abs_epi8(w), simde_mm_sign_epi8(a, w));
    return simde_mm_add_epi32(sums, simde_mm_madd_epi16(pairs, simde_mm_set1_epi16(1)));
#else
    const simde__m128i low =
        simde_mm_madd_epi16(simde_mm_cvtepi8_epi16(w), simde_mm_cvtepi8_epi16(a));
    const simde__m128i high =
        simde_mm_madd_epi16(simde_mm_cvtepi8_epi16(simde_mm_srli_si128(w, 8)),
                            simde_mm_cvtepi8_epi16(simde_mm_srli_si128(a, 8)));
    return simde_mm_add_epi32(sums, simde_mm_add_epi32(low, high));
#endif
}

simde__m128i fold_rows(const simde__m128i* s) noexcept {
    const simde__m128i a = simde_mm_add_epi32(simde_mm_unpacklo_epi32(s[0], s[1]),
                                              simde_mm_unpackhi_epi32(s[0], s[1]));
    const simde__m128i b = simde_mm_add_epi32(simde_mm_unpacklo_epi32(s[2], s[3]),
                                              simde_mm_unpackhi_epi32(s[2], s[3]));
    return simde_mm_add_epi32(simde_mm_unpacklo_epi64(a, b), simde_mm_unpackhi_epi64(a, b));
}

void put(float* y, Vector value, size_t rows, bool accumulate) noexcept {
    float four[quad];
    simde_mm_storeu_ps(four, value);
    for (size_t r = 0; r < rows; ++r)
        y[r] = accumulate ? y[r] + four[r] : four[r];
}

void matmul_q8(const int8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void*) noexcept {
    const size_t groups = x.cols / group;
    for (size_t row = begin; row < end; row += quad) {
        const size_t rows = end - row < quad ? end - row : quad;
        const int8_t* source[quad];
        float scales[quad];
        for (size_t r = 0; r < quad; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            source[r] = w + index * x.cols;
            scales[r] = scale[index];
        }
        for (size_t t = 0; t < x.count; ++t) {
            Vector acc = simde_mm_setzero_ps();
            for (size_t g = 0; g < groups; ++g) {
                const int8_t* a = x.q + t * x.cols + g * group;
                const simde__m128i a0 = load_bytes(a), a1 = load_bytes(a + 16);
                simde__m128i s[quad];
                for (size_t r = 0; r < quad; ++r) {
                    const int8_t* p = source[r] + g * group;
                    s[r] = dot_16(simde_mm_setzero_si128(), load_bytes(p), a0);
                    s[r] = dot_16(s[r], load_bytes(p + 16), a1);
                }
                acc = fused_4(simde_mm_cvtepi32_ps(fold_rows(s)),
                              simde_mm_set1_ps(x.scale[t * groups + g]), acc);
            }
            put(target.y + t * target.stride + row, simde_mm_mul_ps(acc, simde_mm_loadu_ps(scales)),
                rows, target.add);
        }
    }
}

void matmul_q4(const uint8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void*) noexcept {
    const simde__m128i nibble = simde_mm_set1_epi8(15), eight = simde_mm_set1_epi8(8);
    const size_t groups = x.cols / group;
    for (size_t row = begin; row < end; row += quad) {
        const size_t rows = end - row < quad ? end - row : quad;
        const uint8_t* source[quad];
        const float* scales[quad];
        for (size_t r = 0; r < quad; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            source[r] = w + index * (x.cols / 2);
            scales[r] = scale + index * groups;
        }
        for (size_t t = 0; t < x.count; ++t) {
            Vector acc = simde_mm_setzero_ps();
            for (size_t g = 0; g < groups; ++g) {
                const int8_t* a = x.q + t * x.cols + g * group;
                const simde__m128i a0 = load_bytes(a), a1 = load_bytes(a + 16);
                simde__m128i s[quad];
                for (size_t r = 0; r < quad; ++r) {
                    const simde__m128i pairs = load_bytes(source[r] + g * (group / 2));
                    const simde__m128i low = simde_mm_and_si128(pairs, nibble);
                    const simde__m128i high =
                        simde_mm_and_si128(simde_mm_srli_epi16(pairs, 4), nibble);
                    s[r] = dot_16(simde_mm_setzero_si128(), simde_mm_sub_epi8(low, eight), a0);
                    s[r] = dot_16(s[r], simde_mm_sub_epi8(high, eight), a1);
                }
                const Vector weight_scale =
                    simde_mm_setr_ps(scales[0][g], scales[1][g], scales[2][g], scales[3][g]);
                const Vector factor =
                    simde_mm_mul_ps(weight_scale, simde_mm_set1_ps(x.scale[t * groups + g]));
                acc = fused_4(simde_mm_cvtepi32_ps(fold_rows(s)), factor, acc);
            }
            put(target.y + t * target.stride + row, acc, rows, target.add);
        }
    }
}

uint64_t dot_loop(uint64_t count) noexcept {
    constexpr size_t chains = 8;
    volatile int8_t seed = 3; // read anew for each, or chains that look alike would become one
    simde__m128i sums[chains], w = simde_mm_set1_epi8(seed);
    for (simde__m128i& sum : sums)
        sum = simde_mm_set1_epi32(seed);
    uint64_t done = 0;
    for (; done < count; done += chains * 16) {
        w = simde_mm_xor_si128(w, simde_mm_set1_epi8(1)); // or all but the sum would be done once
        for (simde__m128i& sum : sums)
            sum = dot_16(sum, w, w);
    }
    for (size_t i = 1; i < chains; ++i)
        sums[0] = simde_mm_add_epi32(sums[0], sums[i]);
    volatile int kept = simde_mm_cvtsi128_si32(sums[0]);
    static_cast<void>(kept);
    return done;
}

} // namespace
} // namespace mnm::kernels
