// SPDX-License-Identifier: MIT
// Reading sixteen rows of weights where they are mapped, and writing their results.
#pragma once

#include "kernels/table.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

namespace mnm::kernels {
namespace {

__m512i load_bytes(const void* p, __mmask64 mask) noexcept {
    return _mm512_maskz_loadu_epi8(mask, p);
}

/// Scales of groups g..g+count of sixteen rows, one register per group; count <= 4.
void load_q4_scales(const float* const* source, size_t g, size_t count, __m512* out) noexcept {
    const auto mask = static_cast<__mmask8>((1U << count) - 1);
    __m512 v[4];
    for (size_t i = 0; i < 4; ++i) { // rows i, 4 + i, 8 + i, 12 + i side by side
        v[i] = _mm512_castps128_ps512(_mm_maskz_loadu_ps(mask, source[i] + g));
        v[i] = _mm512_insertf32x4(v[i], _mm_maskz_loadu_ps(mask, source[4 + i] + g), 1);
        v[i] = _mm512_insertf32x4(v[i], _mm_maskz_loadu_ps(mask, source[8 + i] + g), 2);
        v[i] = _mm512_insertf32x4(v[i], _mm_maskz_loadu_ps(mask, source[12 + i] + g), 3);
    }
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(v[0], v[1]));
    const __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(v[0], v[1]));
    const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(v[2], v[3]));
    const __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(v[2], v[3]));
    out[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    out[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    out[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    out[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
}

/// y[0..rows) = or += value.
void put(float* y, __m512 value, size_t rows, bool accumulate) noexcept {
    const auto mask = static_cast<__mmask16>(rows >= 16 ? 0xFFFF : (1U << rows) - 1);
    if (accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), value);
    _mm512_mask_storeu_ps(y, mask, value);
}

} // namespace
} // namespace mnm::kernels
