// SPDX-License-Identifier: MIT
// Integer products on zmm registers, many tokens: a prompt. Each broadcast of four activations
// serves both panels.
#pragma once

#include "kernels/avx512_vnni/panels.h"
#include "kernels/avx512_vnni/token_products.h"

namespace mnm::kernels {
namespace {

/// One tile: up to 32 rows (two panels) by Tokens tokens. Offset: 128 for q8, 8 for q4.
template <size_t Tokens, size_t Blocks, int Offset>
void tile(const Panels& panels, const QuantizedRows& x, size_t token, float* y, size_t stride,
          bool accumulate, size_t rows) noexcept {
    const size_t groups = x.cols / group;
    const int8_t* a = x.q + token * x.cols;
    const float* xscale = x.scale + token * groups;
    const int32_t* xsum = x.sum + token * groups;
    __m512 acc[Blocks][Tokens];
    for (size_t b = 0; b < Blocks; ++b) {
        for (size_t t = 0; t < Tokens; ++t)
            acc[b][t] = _mm512_setzero_ps();
    }
    for (size_t g = 0; g < groups; ++g) {
        __m512i dot[Blocks][Tokens];
        for (size_t t = 0; t < Tokens; ++t) {
            const __m512i sum = _mm512_set1_epi32(xsum[t * groups + g]);
            dot[0][t] = _mm512_sub_epi32(_mm512_setzero_si512(),
                                         _mm512_slli_epi32(sum, Offset == 128 ? 7 : 3));
            if (Blocks == 2) dot[Blocks - 1][t] = dot[0][t];
        }
        for (size_t j = 0; j < 8; ++j) {
            __m512i weights[Blocks];
            for (size_t b = 0; b < Blocks; ++b) {
                weights[b] = _mm512_load_si512(panels.bytes[b] + g * 8 + j);
            }
            for (size_t t = 0; t < Tokens; ++t) {
                int32_t four;
                memcpy(&four, a + t * x.cols + g * group + 4 * j, 4);
                const __m512i input = _mm512_set1_epi32(four);
                for (size_t b = 0; b < Blocks; ++b) {
                    dot[b][t] = _mm512_dpbusd_epi32(dot[b][t], weights[b], input);
                }
            }
        }
        for (size_t b = 0; b < Blocks; ++b) {
            const __m512 scales =
                Offset == 8 ? _mm512_load_ps(panels.scales[b] + g * 16) : __m512{};
            for (size_t t = 0; t < Tokens; ++t) {
                __m512 factor = splat(xscale[t * groups + g]);
                if (Offset == 8) factor = _mm512_mul_ps(scales, factor);
                acc[b][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[b][t]), factor, acc[b][t]);
            }
        }
    }
    for (size_t b = 0; b < Blocks; ++b) {
        const size_t left = rows - 16 * b;
        for (size_t t = 0; t < Tokens; ++t) {
            __m512 value = acc[b][t];
            if (Offset == 128) value = _mm512_mul_ps(value, _mm512_load_ps(panels.scales[b]));
            put(y + (token + t) * stride + 16 * b, value, left, accumulate);
        }
    }
}

template <size_t Blocks, int Offset>
void tiles(const Panels& panels, const QuantizedRows& x, float* y, size_t stride, bool accumulate,
           size_t rows) noexcept {
    size_t t = 0;
    while (t < x.count) {
        switch (x.count - t) {
        case 1:
            tile<1, Blocks, Offset>(panels, x, t, y, stride, accumulate, rows);
            return;
        case 2:
            tile<2, Blocks, Offset>(panels, x, t, y, stride, accumulate, rows);
            return;
        case 3:
            tile<3, Blocks, Offset>(panels, x, t, y, stride, accumulate, rows);
            return;
        case 4:
            tile<4, Blocks, Offset>(panels, x, t, y, stride, accumulate, rows);
            return;
        case 5:
            tile<5, Blocks, Offset>(panels, x, t, y, stride, accumulate, rows);
            return;
        case 7: // 4 + 3 rather than 6 + 1
            tile<4, Blocks, Offset>(panels, x, t, y, stride, accumulate, rows);
            t += 4;
            break;
        default:
            tile<6, Blocks, Offset>(panels, x, t, y, stride, accumulate, rows);
            t += 6;
        }
    }
}

template <int Offset>
void multiply_panels(const Panels& panels, const QuantizedRows& x, const Target& target, size_t row,
                     size_t rows) noexcept {
    float* y = target.y + row;
    if (rows > 16)
        tiles<2, Offset>(panels, x, y, target.stride, target.add, rows);
    else
        tiles<1, Offset>(panels, x, y, target.stride, target.add, rows);
}

void matmul_q8(const int8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void* scratch) noexcept {
    if (x.count == 1) {
        q8_token(w, scale, begin, end, x.cols, x.q, x.scale, x.sum, target.y, target.add);
        return;
    }
    const Panels panels = panels_in(scratch, x.cols);
    each_panel_pair(
        begin, end,
        [&](size_t row, size_t rows, size_t block) {
            pack_q8<false>(w, scale, row, rows, x.cols, panels, block);
        },
        [&](size_t row, size_t rows) { multiply_panels<128>(panels, x, target, row, rows); });
}

void matmul_q4(const uint8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void* scratch) noexcept {
    if (x.count == 1) {
        q4_token(w, scale, begin, end, x.cols, x.q, x.scale, x.sum, target.y, target.add);
        return;
    }
    const Panels panels = panels_in(scratch, x.cols);
    each_panel_pair(
        begin, end,
        [&](size_t row, size_t rows, size_t block) {
            pack_q4<false>(w, scale, row, rows, x.cols, panels, block);
        },
        [&](size_t row, size_t rows) { multiply_panels<8>(panels, x, target, row, rows); });
}

uint64_t dot_loop(uint64_t count) noexcept {
    constexpr size_t chains = 16;
    volatile char seed = 3; // read anew for each, or chains that look alike would become one
    const __m512i w = _mm512_set1_epi8(seed);
    __m512i sums[chains];
    for (__m512i& sum : sums)
        sum = _mm512_set1_epi32(seed);
    uint64_t done = 0;
    for (; done < count; done += chains * 64) {
        for (__m512i& sum : sums)
            sum = _mm512_dpbusd_epi32(sum, w, w);
    }
    for (size_t i = 1; i < chains; ++i)
        sums[0] = _mm512_add_epi32(sums[0], sums[i]);
    volatile int kept = _mm512_reduce_add_epi32(sums[0]);
    static_cast<void>(kept);
    return done;
}

} // namespace
} // namespace mnm::kernels
