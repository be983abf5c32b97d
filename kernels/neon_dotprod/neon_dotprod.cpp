// SPDX-License-Identifier: MIT
// ARMv8.2 dot products: SDOT adds four signed byte products to each of four sums.
#include "kernels/table.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

namespace mnm::kernels {
namespace {

constexpr size_t quad = 4;

int32x4_t fold_rows(const int32x4_t* s) noexcept {
    return vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3]));
}

void put(float* y, float32x4_t value, size_t rows, bool accumulate) noexcept {
    float four[quad];
    vst1q_f32(four, value);
    for (size_t r = 0; r < rows; ++r)
        y[r] = accumulate ? y[r] + four[r] : four[r];
}

/// The 32 weights of a group in column order, as two vectors.
struct Group {
    int8x16_t low, high;
};

/// Four rows by all tokens: Weights(r, g) gives the group g of row r, Factor(g) its four scales.
template <class Weights, class Factor, class Finish>
void rows_by_tokens(size_t row, size_t rows, const QuantizedRows& x, const Target& target,
                    const Weights& weights, const Factor& factor, const Finish& finish) noexcept {
    const size_t groups = x.cols / group;
    for (size_t t = 0; t < x.count; ++t) {
        float32x4_t acc = vdupq_n_f32(0);
        for (size_t g = 0; g < groups; ++g) {
            const int8_t* a = x.q + t * x.cols + g * group;
            const int8x16_t a0 = vld1q_s8(a), a1 = vld1q_s8(a + 16);
            int32x4_t s[quad];
            for (size_t r = 0; r < quad; ++r) {
                const Group w = weights(r, g);
                s[r] = vdotq_s32(vdotq_s32(vdupq_n_s32(0), w.low, a0), w.high, a1);
            }
            acc = vfmaq_f32(acc, vcvtq_f32_s32(fold_rows(s)), factor(g, x.scale[t * groups + g]));
        }
        put(target.y + t * target.stride + row, finish(acc), rows, target.add);
    }
}

void matmul_q8(const int8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void*) noexcept {
    for (size_t row = begin; row < end; row += quad) {
        const size_t rows = end - row < quad ? end - row : quad;
        const int8_t* source[quad];
        float scales[quad];
        for (size_t r = 0; r < quad; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            source[r] = w + index * x.cols;
            scales[r] = scale[index];
        }
        rows_by_tokens(
            row, rows, x, target,
            [&](size_t r, size_t g) {
                const int8_t* p = source[r] + g * group;
                return Group{vld1q_s8(p), vld1q_s8(p + 16)};
            },
            [](size_t, float input) { return vdupq_n_f32(input); },
            [&](float32x4_t acc) { return vmulq_f32(acc, vld1q_f32(scales)); });
    }
}

void matmul_q4(const uint8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void*) noexcept {
    const size_t groups = x.cols / group;
    const int8x16_t eight = vdupq_n_s8(8);
    for (size_t row = begin; row < end; row += quad) {
        const size_t rows = end - row < quad ? end - row : quad;
        const uint8_t* source[quad];
        const float* scales[quad];
        for (size_t r = 0; r < quad; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            source[r] = w + index * (x.cols / 2);
            scales[r] = scale + index * groups;
        }
        rows_by_tokens(
            row, rows, x, target,
            [&](size_t r, size_t g) {
                const uint8x16_t pairs = vld1q_u8(source[r] + g * (group / 2));
                const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(pairs, vdupq_n_u8(15)));
                const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(pairs, 4));
                return Group{vsubq_s8(low, eight), vsubq_s8(high, eight)};
            },
            [&](size_t g, float input) {
                const float four[quad] = {scales[0][g], scales[1][g], scales[2][g], scales[3][g]};
                return vmulq_n_f32(vld1q_f32(four), input);
            },
            [](float32x4_t acc) { return acc; });
    }
}

uint64_t dot_loop(uint64_t count) noexcept {
    constexpr size_t chains = 16;
    volatile int8_t seed = 3; // read anew for each, or chains that look alike would become one
    const int8x16_t w = vdupq_n_s8(seed);
    int32x4_t sums[chains];
    for (int32x4_t& sum : sums)
        sum = vdupq_n_s32(seed);
    uint64_t done = 0;
    for (; done < count; done += chains * 16) {
        for (int32x4_t& sum : sums)
            sum = vdotq_s32(sum, w, w);
    }
    for (size_t i = 1; i < chains; ++i)
        sums[0] = vaddq_s32(sums[0], sums[i]);
    volatile int kept = vgetq_lane_s32(sums[0], 0);
    static_cast<void>(kept);
    return done;
}

} // namespace

void install_neon_dotprod(Kernels& table) noexcept;
void install_neon_dotprod(Kernels& table) noexcept {
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.dot_loop = dot_loop;
}

} // namespace mnm::kernels
