// SPDX-License-Identifier: MIT
// The float kernels of every vector level, written once against sixteen lanes.
//
// A level's unit defines, in its anonymous namespace and before it includes this file:
//   Lanes                    sixteen floats
//   load, store, splat, add, sub, mul, div, fused(a, b, c) = a*b + c with one rounding,
//   larger(a, b) = a > b ? a : b, smaller(a, b) = a < b ? a : b
//   two_to_the(shifted)      2^n where n stands in the low bits of shifted (see exp_lanes)
//   zero_below(x, limit, y)  x < limit ? 0 : y
//   load_some(p, n, fill)    the first n lanes from p, the others fill
//   fold_add, fold_max       all lanes to one, in the order of kernels/table.h
//   fused_1(a, b, c)         one fused multiply-add
//   quantize                 as in kernels/table.h (integer instructions differ too much)
//   turned(x, cos_sin)       pairs (a, b) by pairs (c, s): fused(a, c, -(b*s)), fused(b, c, a*s)
//   repeated(p)              four floats, four times
//   quarter_sums(x)          in each lane (a + b) + (c + d) of its quarter
//   clamped(x, low, high)    no NaN among them
//   held(x)                  x, kept in a register where its load would be repeated
//   fetch(p)                 the cache line at p, wanted soon
//   load_stored(p)           sixteen half floats (uint16_t) or int8 as floats
//   f32_rows, f32_tokens     tile of matmul_f32
//   score_vectors, value_vectors  vectors of keys scored, and of a head's values summed, at once
// Everything stays in the anonymous namespace: see docs/adding-a-kernel-level.md.
#pragma once

Lanes exp_lanes(Lanes x) noexcept {
    const Lanes limited = smaller(x, splat(88.37f));
    const Lanes magic = splat(12582912.0f);
    const Lanes shifted = fused(limited, splat(1.44269504f), magic);
    const Lanes n = sub(shifted, magic);
    Lanes r = fused(n, splat(-0.693359375f), limited);
    r = fused(n, splat(2.12194440e-4f), r);
    Lanes p = splat(1.9875691500e-4f);
    p = fused(p, r, splat(1.3981999507e-3f));
    p = fused(p, r, splat(8.3334519073e-3f));
    p = fused(p, r, splat(4.1665795894e-2f));
    p = fused(p, r, splat(1.6666665459e-1f));
    p = fused(p, r, splat(5.0000001201e-1f));
    p = add(fused(p, mul(r, r), r), splat(1.0f));
    return zero_below(x, -87.33f, mul(p, two_to_the(shifted)));
}

/// Dots of Rows x Tokens pairs; vectors of n floats, rows `row_stride` apart, tokens n apart.
template <size_t Rows, size_t Tokens>
void f32_tile(const float* w, const float* x, size_t n, float* y, size_t stride, bool accumulate,
              size_t rows, size_t tokens) noexcept {
    Lanes acc[Rows][Tokens];
    const float* weights[Rows];
    const float* inputs[Tokens];
    for (size_t r = 0; r < Rows; ++r)
        weights[r] = w + (r < rows ? r : rows - 1) * n;
    for (size_t t = 0; t < Tokens; ++t)
        inputs[t] = x + (t < tokens ? t : tokens - 1) * n;
    for (size_t r = 0; r < Rows; ++r) {
        for (size_t t = 0; t < Tokens; ++t)
            acc[r][t] = splat(0.0f);
    }
    for (size_t i = 0; i < n; i += lanes) {
        Lanes a[Rows];
        for (size_t r = 0; r < Rows; ++r)
            a[r] = load(weights[r] + i);
        for (size_t t = 0; t < Tokens; ++t) {
            const Lanes b = load(inputs[t] + i);
            for (size_t r = 0; r < Rows; ++r)
                acc[r][t] = fused(a[r], b, acc[r][t]);
        }
    }
    for (size_t t = 0; t < tokens; ++t) {
        for (size_t r = 0; r < rows; ++r) {
            float& target = y[t * stride + r];
            const float sum = fold_add(acc[r][t]);
            target = accumulate ? target + sum : sum;
        }
    }
}

void matmul_f32(const float* w, size_t begin, size_t end, const FloatRows& x, const Target& target,
                void*) noexcept {
    for (size_t r = begin; r < end; r += f32_rows) {
        const size_t rows = end - r < f32_rows ? end - r : f32_rows;
        for (size_t t = 0; t < x.count; t += f32_tokens) {
            const size_t tokens = x.count - t < f32_tokens ? x.count - t : f32_tokens;
            const float* weights = w + r * x.cols;
            const float* inputs = x.x + t * x.cols;
            float* y = target.y + t * target.stride + r;
            if (tokens == 1) {
                f32_tile<f32_rows, 1>(weights, inputs, x.cols, y, target.stride, target.add, rows,
                                      1);
            } else {
                f32_tile<f32_rows, f32_tokens>(weights, inputs, x.cols, y, target.stride,
                                               target.add, rows, tokens);
            }
        }
    }
}

void rmsnorm(const float* x, const float* w, size_t n, float eps, float* y) noexcept {
    Lanes squares = splat(0.0f);
    for (size_t i = 0; i < n; i += lanes) {
        const Lanes v = load(x + i);
        squares = fused(v, v, squares);
    }
    const float mean = fold_add(squares) / static_cast<float>(n);
    const Lanes inverse = splat(1.0f / sqrtf(mean + eps));
    for (size_t i = 0; i < n; i += lanes) {
        store(y + i, mul(mul(load(x + i), inverse), load(w + i)));
    }
}

void rope(float* head, size_t head_dim, const float* cos_sin) noexcept {
    size_t i = 0;
    for (; i + lanes <= head_dim; i += lanes)
        store(head + i, turned(load(head + i), load(cos_sin + i)));
    for (; i < head_dim; i += 2) {
        const float c = cos_sin[i], s = cos_sin[i + 1];
        const float a = head[i], b = head[i + 1];
        head[i] = fused_1(a, c, -(b * s));
        head[i + 1] = fused_1(b, c, a * s);
    }
}

void swiglu(const float* gate, const float* up, size_t n, float* y) noexcept {
    const Lanes one = splat(1.0f), zero = splat(0.0f);
    for (size_t i = 0; i < n; i += lanes) {
        const Lanes g = load(gate + i);
        const Lanes e = exp_lanes(sub(zero, g));
        store(y + i, mul(div(g, add(one, e)), load(up + i)));
    }
}

#include "kernels/src/attention_kernels.h"
#include "kernels/src/fit_kernels.h"

float softmax(const float* x, size_t n, float scale, float* y) noexcept {
    Lanes top = splat(x[0]);
    for (size_t i = 0; i < n; i += lanes)
        top = larger(load_some(x + i, n - i, x[0]), top);
    const Lanes largest = splat(fold_max(top));
    Lanes sums = splat(0.0f);
    for (size_t i = 0; i < n; i += lanes) {
        const Lanes v = load_some(x + i, n - i, -INFINITY);
        const Lanes e = exp_lanes(mul(sub(v, largest), splat(scale)));
        if (n - i >= lanes) {
            store(y + i, e);
        } else {
            float rest[lanes];
            store(rest, e);
            for (size_t j = 0; j < n - i; ++j)
                y[i + j] = rest[j];
        }
        sums = add(sums, e);
    }
    return fold_add(sums);
}

void exp_all(const float* x, size_t n, float* y) noexcept {
    for (size_t i = 0; i < n; i += lanes)
        store(y + i, exp_lanes(load(x + i)));
}

size_t argmax(const float* x, size_t n) noexcept {
    constexpr size_t block = 16 * lanes;
    size_t first = 0, i = 0; // the place, or the block, of the first maximum so far
    float best = x[0];
    for (; i + block <= n; i += block) {
        Lanes top = load(x + i);
        for (size_t j = lanes; j < block; j += lanes)
            top = larger(load(x + i + j), top);
        const float largest = fold_max(top);
        if (largest > best) {
            best = largest;
            first = i;
        }
    }
    for (; i < n; ++i) {
        if (x[i] > best) {
            best = x[i];
            first = i;
        }
    }
    while (x[first] < best)
        ++first;
    return first;
}

void install_float_kernels(Kernels& table) noexcept {
    table.quantize = quantize;
    table.matmul_f32 = matmul_f32;
    table.rmsnorm = rmsnorm;
    table.rope = rope;
    table.swiglu = swiglu;
    table.attend = attend;
    table.attend_merge = attend_merge;
    table.attend_finish = attend_finish;
    table.softmax = softmax;
    table.exp = exp_all;
    table.argmax = argmax;
    table.fit_q4 = fit_q4;
}
