// SPDX-License-Identifier: MIT
// Integer products on zmm registers, many tokens: a prompt.
// 32 rows are packed into two panels in which a register holds four columns of sixteen rows, and
// each broadcast of four activations serves both.
#pragma once

#include "kernels/avx512_vnni/token_products.h"

namespace mnm::kernels {
namespace {

constexpr size_t panel_rows = 32; ///< rows packed at once; the next ones are fetched meanwhile

/// Sixteen registers of sixteen dwords, transposed in place.
void transpose(__m512i* v) noexcept {
    __m512i t[16];
    for (int i = 0; i < 16; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        const __m512i b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]);
        const __m512i d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    // t[4i + j]: lane l holds column 4l + j of rows 4i..4i+3.
    for (int j = 0; j < 4; ++j) {
        const __m512i ab01 = _mm512_shuffle_i32x4(t[j], t[4 + j], 0x44);
        const __m512i ab23 = _mm512_shuffle_i32x4(t[j], t[4 + j], 0xEE);
        const __m512i cd01 = _mm512_shuffle_i32x4(t[8 + j], t[12 + j], 0x44);
        const __m512i cd23 = _mm512_shuffle_i32x4(t[8 + j], t[12 + j], 0xEE);
        v[j] = _mm512_shuffle_i32x4(ab01, cd01, 0x88);
        v[4 + j] = _mm512_shuffle_i32x4(ab01, cd01, 0xDD);
        v[8 + j] = _mm512_shuffle_i32x4(ab23, cd23, 0x88);
        v[12 + j] = _mm512_shuffle_i32x4(ab23, cd23, 0xDD);
    }
}

/// Panels of sixteen rows: register (g * 8 + j) of a panel holds columns 32 g + 4 j .. + 3 of each
/// row.
struct Panels {
    __m512i* bytes[2];
    float* scales[2]; ///< q4: [groups][16]; q8: [16], one scale a row
};

void pack_q8(const int8_t* w, size_t row, size_t rows, size_t cols, __m512i* panel) noexcept {
    const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
    for (size_t c = 0; c < cols; c += 64) {
        const __mmask64 mask = cols - c >= 64 ? ~__mmask64{0} : 0xFFFFFFFFU;
        __m512i v[16];
        for (size_t r = 0; r < 16; ++r) {
            const int8_t* source = w + (row + (r < rows ? r : rows - 1)) * cols + c;
            _mm_prefetch(reinterpret_cast<const char*>(source + panel_rows * cols), _MM_HINT_T1);
            v[r] = load_bytes(source, mask);
        }
        transpose(v);
        const size_t registers = cols - c >= 64 ? 16 : 8;
        for (size_t j = 0; j < registers; ++j)
            panel[c / 4 + j] = _mm512_xor_si512(v[j], flip);
    }
}

void pack_q4(const uint8_t* w, const float* scale, size_t row, size_t rows, size_t cols,
             __m512i* panel, float* scales) noexcept {
    const __m512i nibble = _mm512_set1_epi8(15);
    const size_t groups = cols / group;
    for (size_t g = 0; g < groups; g += 4) {
        const size_t count = groups - g < 4 ? groups - g : 4;
        const __mmask64 mask = count == 4 ? ~__mmask64{0} : (__mmask64{1} << (16 * count)) - 1;
        __m512i v[16];
        const float* source[16];
        for (size_t r = 0; r < 16; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            const uint8_t* nibbles = w + index * (cols / 2) + g * 16;
            _mm_prefetch(reinterpret_cast<const char*>(nibbles + panel_rows * cols / 2),
                         _MM_HINT_T1);
            v[r] = load_bytes(nibbles, mask);
            source[r] = scale + index * groups;
        }
        transpose(v);
        __m512 weight_scales[4];
        load_q4_scales(source, g, count, weight_scales);
        for (size_t i = 0; i < count; ++i) {
            __m512i* out = panel + (g + i) * 8;
            for (size_t j = 0; j < 4; ++j) {
                const __m512i pairs = v[4 * i + j];
                out[j] = _mm512_and_si512(pairs, nibble);
                out[4 + j] = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), nibble);
            }
            _mm512_store_ps(scales + (g + i) * 16, weight_scales[i]);
        }
    }
}

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

/// Rows [begin, end) in panels of 32: Pack(row, rows, block) fills a panel.
template <int Offset, class Pack>
void multiply_panels(size_t begin, size_t end, const QuantizedRows& x, const Target& target,
                     const Panels& panels, const Pack& pack) noexcept {
    for (size_t row = begin; row < end; row += panel_rows) {
        const size_t rows = end - row < panel_rows ? end - row : panel_rows;
        float* y = target.y + row;
        pack(row, rows < 16 ? rows : 16, 0);
        if (rows > 16) {
            pack(row + 16, rows - 16, 1);
            tiles<2, Offset>(panels, x, y, target.stride, target.add, rows);
        } else {
            tiles<1, Offset>(panels, x, y, target.stride, target.add, rows);
        }
    }
}

Panels panels_in(void* scratch, size_t cols) noexcept {
    auto* bytes = static_cast<uint8_t*>(scratch);
    const size_t panel = 16 * cols, scales = 16 * (cols / group) * sizeof(float);
    Panels panels;
    for (size_t b = 0; b < 2; ++b) {
        panels.bytes[b] = reinterpret_cast<__m512i*>(bytes + b * panel);
        panels.scales[b] = reinterpret_cast<float*>(bytes + 2 * panel + b * scales);
    }
    return panels;
}

void matmul_q8(const int8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void* scratch) noexcept {
    if (x.count == 1) {
        q8_token(w, scale, begin, end, x.cols, x.q, x.scale, x.sum, target.y, target.add);
        return;
    }
    const Panels panels = panels_in(scratch, x.cols);
    multiply_panels<128>(begin, end, x, target, panels, [&](size_t row, size_t rows, size_t block) {
        pack_q8(w, row, rows, x.cols, panels.bytes[block]);
        _mm512_store_ps(panels.scales[block], load_some(scale + row, rows, 0.0f));
    });
}

void matmul_q4(const uint8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void* scratch) noexcept {
    if (x.count == 1) {
        q4_token(w, scale, begin, end, x.cols, x.q, x.scale, x.sum, target.y, target.add);
        return;
    }
    const Panels panels = panels_in(scratch, x.cols);
    multiply_panels<8>(begin, end, x, target, panels, [&](size_t row, size_t rows, size_t block) {
        pack_q4(w, scale, row, rows, x.cols, panels.bytes[block], panels.scales[block]);
    });
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
