// SPDX-License-Identifier: MIT
// Rows packed for a prompt: 32 of them as two panels in which a register holds four columns of
// sixteen rows.
#pragma once

#include "kernels/avx512_vnni/rows.h"

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

/// Signed: as they are; else with 128 added, for instructions that take unsigned weights.
template <bool Signed>
void pack_q8(const int8_t* w, const float* scale, size_t row, size_t rows, size_t cols,
             const Panels& panels, size_t block) noexcept {
    __m512i* panel = panels.bytes[block];
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
            panel[c / 4 + j] = Signed ? v[j] : _mm512_xor_si512(v[j], flip);
    }
    const auto mask = static_cast<__mmask16>((1U << rows) - 1);
    _mm512_store_ps(panels.scales[block], _mm512_maskz_loadu_ps(mask, scale + row));
}

/// Signed: -8 to 7; else 0 to 15, as they are stored.
template <bool Signed>
void pack_q4(const uint8_t* w, const float* scale, size_t row, size_t rows, size_t cols,
             const Panels& panels, size_t block) noexcept {
    __m512i* panel = panels.bytes[block];
    const __m512i nibble = _mm512_set1_epi8(15), eight = _mm512_set1_epi8(8);
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
                const __m512i low = _mm512_and_si512(pairs, nibble);
                const __m512i high = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), nibble);
                out[j] = Signed ? _mm512_sub_epi8(low, eight) : low;
                out[4 + j] = Signed ? _mm512_sub_epi8(high, eight) : high;
            }
            _mm512_store_ps(panels.scales[block] + (g + i) * 16, weight_scales[i]);
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

/// Rows [begin, end), 32 at a time: pack(row, rows, block) for up to sixteen of them, once or
/// twice, then multiply(row, rows).
template <class Pack, class Multiply>
void each_panel_pair(size_t begin, size_t end, const Pack& pack,
                     const Multiply& multiply) noexcept {
    for (size_t row = begin; row < end; row += panel_rows) {
        const size_t rows = end - row < panel_rows ? end - row : panel_rows;
        pack(row, rows < 16 ? rows : 16, 0);
        if (rows > 16) pack(row + 16, rows - 16, 1);
        multiply(row, rows);
    }
}

} // namespace
} // namespace mnm::kernels
