// SPDX-License-Identifier: MIT
// Integer products on ymm registers, written once for the levels that differ in their dot
// instruction.
//
// A level's unit defines, in its anonymous namespace and before it includes this file, struct Ops:
//   q8_offset                       what is added to a q8 weight before it is multiplied: 128 or 0
//   q8_step(sums, w, a)             eight sums of four products; w has q8_offset added (as
//   unsigned) q4_step(sums, w, a)             the same for nibbles, w in 0..15; at most eight steps
//   before q4_finish(sums)                 eight int32 sums
// The method is that of avx512_vnni/*_products.h with eight rows for sixteen.
#pragma once

constexpr size_t half_block = 8;
/// How many rows ahead the weights of one token are fetched: 12 KB in the models this is for.
constexpr size_t q8_rows_ahead = 16, q4_rows_ahead = 32;
constexpr size_t panel_rows = 16; ///< rows packed at once; the next ones are fetched meanwhile

__m256i load_bytes(const void* p) noexcept {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

__m256i flipped(__m256i w) noexcept {
    return Ops::q8_offset == 0 ? w : _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80)));
}

/// Sixteen bytes of nibble pairs as 32 nibbles in column order.
__m256i nibbles(const uint8_t* p) noexcept {
    const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(pairs), _mm_srli_epi16(pairs, 4), 1);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/// Eight registers of 4 + 4 partial sums: adds within each 128-bit lane, leaving four rows in
/// out[i].
void fold_lanes(const __m256i* s, __m256i* out) noexcept {
    for (int i = 0; i < 2; ++i) {
        const __m256i* v = s + 4 * i;
        const __m256i a =
            _mm256_add_epi32(_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
        const __m256i b =
            _mm256_add_epi32(_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
        out[i] = _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    }
}

/// Eight registers of eight partial sums to one of eight row sums.
__m256i fold_rows(const __m256i* s) noexcept {
    __m256i half[2];
    fold_lanes(s, half);
    return _mm256_add_epi32(_mm256_permute2x128_si256(half[0], half[1], 0x20),
                            _mm256_permute2x128_si256(half[0], half[1], 0x31));
}

__m256i row_mask(size_t rows) noexcept {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(rows < 8 ? static_cast<int>(rows) : 8), index);
}

/// y[0..rows) = or += value.
void put(float* y, __m256 value, size_t rows, bool accumulate) noexcept {
    if (rows >= half_block) {
        if (accumulate) value = _mm256_add_ps(_mm256_loadu_ps(y), value);
        _mm256_storeu_ps(y, value);
        return;
    }
    const __m256i mask = row_mask(rows);
    if (accumulate) value = _mm256_add_ps(_mm256_maskload_ps(y, mask), value);
    _mm256_maskstore_ps(y, mask, value);
}

__m256 add_group(__m256 acc, __m256i dot, int32_t offset, __m256 factor) noexcept {
    const __m256i exact = _mm256_sub_epi32(dot, _mm256_set1_epi32(offset));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact), factor, acc);
}

void q8_token(const int8_t* w, const float* scale, size_t begin, size_t end, size_t cols,
              const int8_t* x, const float* xscale, const int32_t* xsum, float* y,
              bool accumulate) noexcept {
    for (size_t row = begin; row < end; row += half_block) {
        const size_t rows = end - row < half_block ? end - row : half_block;
        const int8_t* source[half_block];
        for (size_t r = 0; r < half_block; ++r) {
            source[r] = w + (row + (r < rows ? r : rows - 1)) * cols;
        }
        __m256 acc = _mm256_setzero_ps();
        for (size_t g = 0; g < cols / group; ++g) {
            const __m256i a = load_bytes(x + g * group);
            __m256i s[half_block];
            for (size_t r = 0; r < half_block; ++r) {
                const int8_t* p = source[r] + g * group;
                if (g % 2 == 0) {
                    _mm_prefetch(reinterpret_cast<const char*>(p + q8_rows_ahead * cols),
                                 _MM_HINT_T0);
                }
                s[r] = Ops::q8_step(_mm256_setzero_si256(), flipped(load_bytes(p)), a);
            }
            acc = add_group(acc, fold_rows(s), Ops::q8_offset * xsum[g], _mm256_set1_ps(xscale[g]));
        }
        const __m256 scales = _mm256_maskload_ps(scale + row, row_mask(rows));
        put(y + row, _mm256_mul_ps(acc, scales), rows, accumulate);
    }
}

/// Scales of groups g..g+count of eight rows, one register per group; count <= 4.
void load_q4_scales(const float* const* source, size_t g, size_t count, __m256* out) noexcept {
    const __m128i mask =
        _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(count)), _mm_setr_epi32(0, 1, 2, 3));
    __m256 v[4];
    for (size_t i = 0; i < 4; ++i) { // rows i and 4 + i side by side
        v[i] = _mm256_set_m128(_mm_maskload_ps(source[4 + i] + g, mask),
                               _mm_maskload_ps(source[i] + g, mask));
    }
    const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(v[0], v[1]));
    const __m256d b = _mm256_castps_pd(_mm256_unpackhi_ps(v[0], v[1]));
    const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(v[2], v[3]));
    const __m256d d = _mm256_castps_pd(_mm256_unpackhi_ps(v[2], v[3]));
    out[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    out[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    out[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    out[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
}

/// Two groups of eight rows, side by side in the 128-bit lanes until the end: out[0] and out[1]
/// hold the eight dots of either. `low` and `high` are the columns 0..15 and 16..31 of both groups.
void q4_pair(const uint8_t* const* source, size_t offset, __m256i low, __m256i high,
             __m256i* out) noexcept {
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i s[half_block], half[2];
    for (size_t r = 0; r < half_block; ++r) {
        const __m256i pairs = load_bytes(source[r] + offset);
        s[r] = Ops::q4_step(_mm256_setzero_si256(), _mm256_and_si256(pairs, nibble), low);
        s[r] = Ops::q4_step(s[r], _mm256_and_si256(_mm256_srli_epi16(pairs, 4), nibble), high);
        s[r] = Ops::q4_finish(s[r]);
    }
    fold_lanes(s, half);
    out[0] = _mm256_permute2x128_si256(half[0], half[1], 0x20);
    out[1] = _mm256_permute2x128_si256(half[0], half[1], 0x31);
}

/// One group of eight rows.
__m256i q4_single(const uint8_t* const* source, size_t offset, __m256i a) noexcept {
    __m256i s[half_block];
    for (size_t r = 0; r < half_block; ++r) {
        const __m256i w = nibbles(source[r] + offset);
        s[r] = Ops::q4_finish(Ops::q4_step(_mm256_setzero_si256(), w, a));
    }
    return fold_rows(s);
}

void q4_token(const uint8_t* w, const float* scale, size_t begin, size_t end, size_t cols,
              const int8_t* x, const float* xscale, const int32_t* xsum, float* y,
              bool accumulate) noexcept {
    const size_t groups = cols / group, row_bytes = cols / 2;
    for (size_t row = begin; row < end; row += half_block) {
        const size_t rows = end - row < half_block ? end - row : half_block;
        const uint8_t* source[half_block];
        const float* scales[half_block];
        for (size_t r = 0; r < half_block; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            source[r] = w + index * row_bytes;
            scales[r] = scale + index * groups;
        }
        __m256 acc = _mm256_setzero_ps();
        for (size_t g = 0; g < groups; g += 4) {
            const size_t count = groups - g < 4 ? groups - g : 4;
            for (size_t r = 0; r < half_block; ++r) {
                _mm_prefetch(reinterpret_cast<const char*>(source[r] + g * (group / 2) +
                                                           q4_rows_ahead * row_bytes),
                             _MM_HINT_T0);
            }
            // Eight rows of four scales are two cache lines of those ahead.
            const float* scales_ahead = scale + (row + q4_rows_ahead) * groups + g * half_block;
            _mm_prefetch(reinterpret_cast<const char*>(scales_ahead), _MM_HINT_T0);
            _mm_prefetch(reinterpret_cast<const char*>(scales_ahead + 16), _MM_HINT_T0);
            __m256 weight_scales[4];
            load_q4_scales(scales, g, count, weight_scales);
            for (size_t i = 0; i < count; i += 2) {
                const int8_t* a = x + (g + i) * group;
                const size_t offset = (g + i) * (group / 2), some = count - i < 2 ? 1 : 2;
                __m256i dots[2];
                if (some == 2) {
                    const __m256i x0 = load_bytes(a), x1 = load_bytes(a + group);
                    q4_pair(source, offset, _mm256_permute2x128_si256(x0, x1, 0x20),
                            _mm256_permute2x128_si256(x0, x1, 0x31), dots);
                } else {
                    dots[0] = q4_single(source, offset, load_bytes(a));
                }
                for (size_t j = 0; j < some; ++j) {
                    const __m256 factor =
                        _mm256_mul_ps(weight_scales[i + j], _mm256_set1_ps(xscale[g + i + j]));
                    acc = add_group(acc, dots[j], 8 * xsum[g + i + j], factor);
                }
            }
        }
        put(y + row, acc, rows, accumulate);
    }
}

/// Eight registers of eight dwords, transposed in place.
void transpose(__m256i* v) noexcept {
    __m256i t[8];
    for (int i = 0; i < 8; i += 4) {
        const __m256i a = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        const __m256i b = _mm256_unpackhi_epi32(v[i], v[i + 1]);
        const __m256i c = _mm256_unpacklo_epi32(v[i + 2], v[i + 3]);
        const __m256i d = _mm256_unpackhi_epi32(v[i + 2], v[i + 3]);
        t[i] = _mm256_unpacklo_epi64(a, c);
        t[i + 1] = _mm256_unpackhi_epi64(a, c);
        t[i + 2] = _mm256_unpacklo_epi64(b, d);
        t[i + 3] = _mm256_unpackhi_epi64(b, d);
    }
    for (int j = 0; j < 4; ++j) {
        v[j] = _mm256_permute2x128_si256(t[j], t[4 + j], 0x20);
        v[4 + j] = _mm256_permute2x128_si256(t[j], t[4 + j], 0x31);
    }
}

/// Panels of eight rows: register (g * 8 + j) of a panel holds columns 32 g + 4 j .. + 3 of each
/// row.
struct Panels {
    __m256i* bytes[2];
    float* scales[2]; ///< q4: [groups][8]; q8: [8], one scale a row
};

void pack_q8(const int8_t* w, size_t row, size_t rows, size_t cols, __m256i* panel) noexcept {
    for (size_t g = 0; g < cols / group; ++g, panel += 8) {
        __m256i v[8];
        for (size_t r = 0; r < 8; ++r) {
            const int8_t* source = w + (row + (r < rows ? r : rows - 1)) * cols + g * group;
            _mm_prefetch(reinterpret_cast<const char*>(source + panel_rows * cols), _MM_HINT_T1);
            v[r] = load_bytes(source);
        }
        transpose(v);
        for (size_t j = 0; j < 8; ++j)
            _mm256_store_si256(panel + j, flipped(v[j]));
    }
}

void pack_q4(const uint8_t* w, const float* scale, size_t row, size_t rows, size_t cols,
             __m256i* panel, float* scales) noexcept {
    const size_t groups = cols / group;
    const float* source[8];
    for (size_t r = 0; r < 8; ++r)
        source[r] = scale + (row + (r < rows ? r : rows - 1)) * groups;
    for (size_t g = 0; g < groups; ++g, panel += 8) {
        __m256i v[8];
        for (size_t r = 0; r < 8; ++r) {
            const size_t index = row + (r < rows ? r : rows - 1);
            const uint8_t* pairs = w + index * (cols / 2) + g * (group / 2);
            _mm_prefetch(reinterpret_cast<const char*>(pairs + panel_rows * cols / 2), _MM_HINT_T1);
            v[r] = nibbles(pairs);
            scales[g * 8 + r] = source[r][g];
        }
        transpose(v);
        for (size_t j = 0; j < 8; ++j)
            _mm256_store_si256(panel + j, v[j]);
    }
}

/// One tile: up to 16 rows (two panels) by Tokens tokens.
template <size_t Tokens, size_t Blocks, bool Nibbles>
void tile(const Panels& panels, const QuantizedRows& x, size_t token, float* y, size_t stride,
          bool accumulate, size_t rows) noexcept {
    const size_t groups = x.cols / group;
    const int8_t* a = x.q + token * x.cols;
    const float* xscale = x.scale + token * groups;
    const int32_t* xsum = x.sum + token * groups;
    __m256 acc[Blocks][Tokens];
    for (size_t b = 0; b < Blocks; ++b) {
        for (size_t t = 0; t < Tokens; ++t)
            acc[b][t] = _mm256_setzero_ps();
    }
    for (size_t g = 0; g < groups; ++g) {
        __m256i dot[Blocks][Tokens];
        for (size_t b = 0; b < Blocks; ++b) {
            for (size_t t = 0; t < Tokens; ++t)
                dot[b][t] = _mm256_setzero_si256();
        }
        for (size_t j = 0; j < 8; ++j) {
            __m256i weights[Blocks];
            for (size_t b = 0; b < Blocks; ++b) {
                weights[b] = _mm256_load_si256(panels.bytes[b] + g * 8 + j);
            }
            for (size_t t = 0; t < Tokens; ++t) {
                int32_t four;
                memcpy(&four, a + t * x.cols + g * group + 4 * j, 4);
                const __m256i input = _mm256_set1_epi32(four);
                for (size_t b = 0; b < Blocks; ++b) {
                    dot[b][t] = Nibbles ? Ops::q4_step(dot[b][t], weights[b], input)
                                        : Ops::q8_step(dot[b][t], weights[b], input);
                }
            }
        }
        for (size_t b = 0; b < Blocks; ++b) {
            const __m256 scales = Nibbles ? _mm256_load_ps(panels.scales[b] + g * 8) : __m256{};
            for (size_t t = 0; t < Tokens; ++t) {
                const __m256 input_scale = _mm256_set1_ps(xscale[t * groups + g]);
                const int32_t sum = xsum[t * groups + g];
                acc[b][t] =
                    Nibbles ? add_group(acc[b][t], Ops::q4_finish(dot[b][t]), 8 * sum,
                                        _mm256_mul_ps(scales, input_scale))
                            : add_group(acc[b][t], dot[b][t], Ops::q8_offset * sum, input_scale);
            }
        }
    }
    for (size_t b = 0; b < Blocks; ++b) {
        for (size_t t = 0; t < Tokens; ++t) {
            __m256 value = acc[b][t];
            if (!Nibbles) value = _mm256_mul_ps(value, _mm256_load_ps(panels.scales[b]));
            put(y + (token + t) * stride + 8 * b, value, rows - 8 * b, accumulate);
        }
    }
}

template <size_t Blocks, bool Nibbles>
void tiles(const Panels& panels, const QuantizedRows& x, float* y, size_t stride, bool accumulate,
           size_t rows) noexcept {
    size_t t = 0;
    for (; t + 3 <= x.count; t += 3) {
        tile<3, Blocks, Nibbles>(panels, x, t, y, stride, accumulate, rows);
    }
    if (x.count - t == 2) tile<2, Blocks, Nibbles>(panels, x, t, y, stride, accumulate, rows);
    if (x.count - t == 1) tile<1, Blocks, Nibbles>(panels, x, t, y, stride, accumulate, rows);
}

/// Rows [begin, end) in panels of 16: Pack(row, rows, block) fills a panel of eight.
template <bool Nibbles, class Pack>
void multiply_panels(size_t begin, size_t end, const QuantizedRows& x, const Target& target,
                     const Panels& panels, const Pack& pack) noexcept {
    for (size_t row = begin; row < end; row += panel_rows) {
        const size_t rows = end - row < panel_rows ? end - row : panel_rows;
        float* y = target.y + row;
        pack(row, rows < 8 ? rows : 8, 0);
        if (rows > 8) {
            pack(row + 8, rows - 8, 1);
            tiles<2, Nibbles>(panels, x, y, target.stride, target.add, rows);
        } else {
            tiles<1, Nibbles>(panels, x, y, target.stride, target.add, rows);
        }
    }
}

Panels panels_in(void* scratch, size_t cols) noexcept {
    auto* bytes = static_cast<uint8_t*>(scratch);
    const size_t panel = 8 * cols, scales = 8 * (cols / group) * sizeof(float);
    Panels panels;
    for (size_t b = 0; b < 2; ++b) {
        panels.bytes[b] = reinterpret_cast<__m256i*>(bytes + b * panel);
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
    multiply_panels<false>(
        begin, end, x, target, panels, [&](size_t row, size_t rows, size_t block) {
            pack_q8(w, row, rows, x.cols, panels.bytes[block]);
            _mm256_store_ps(panels.scales[block], _mm256_maskload_ps(scale + row, row_mask(rows)));
        });
}

void matmul_q4(const uint8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void* scratch) noexcept {
    if (x.count == 1) {
        q4_token(w, scale, begin, end, x.cols, x.q, x.scale, x.sum, target.y, target.add);
        return;
    }
    const Panels panels = panels_in(scratch, x.cols);
    multiply_panels<true>(
        begin, end, x, target, panels, [&](size_t row, size_t rows, size_t block) {
            pack_q4(w, scale, row, rows, x.cols, panels.bytes[block], panels.scales[block]);
        });
}

uint64_t dot_loop(uint64_t count) noexcept {
    constexpr size_t chains = 10;
    volatile char seed = 3; // read anew for each, or chains that look alike would become one
    __m256i sums[chains], w = _mm256_set1_epi8(seed);
    for (__m256i& sum : sums)
        sum = _mm256_set1_epi32(seed);
    uint64_t done = 0;
    for (; done < count; done += chains * 32) {
        w = _mm256_xor_si256(w, _mm256_set1_epi8(1)); // or all but the sum would be done once
        for (__m256i& sum : sums)
            sum = Ops::q8_step(sum, w, w);
    }
    for (size_t i = 1; i < chains; ++i)
        sums[0] = _mm256_add_epi32(sums[0], sums[i]);
    volatile int kept = _mm256_cvtsi256_si32(sums[0]);
    static_cast<void>(kept);
    return done;
}
