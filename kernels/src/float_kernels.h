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
//   fold_add_4(a, b, c, d, out)  four folds at once
//   fused_1(a, b, c)         one fused multiply-add
//   quantize                 as in kernels/table.h (integer instructions differ too much)
//   f32_rows, f32_tokens     tile of matmul_f32; value_lanes: vectors of a head summed at once
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
    for (size_t i = 0; i < head_dim; i += 2) {
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

/// Scores of up to four keys for one head.
void score_4(const float* q, const float* k, size_t keys, size_t stride, float* out) noexcept {
    const float* key[4];
    for (size_t j = 0; j < 4; ++j)
        key[j] = k + (j < keys ? j : keys - 1) * stride;
    Lanes acc[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
    for (size_t d = 0; d < stride; d += lanes) {
        const Lanes v = load(q + d);
        for (size_t j = 0; j < 4; ++j)
            acc[j] = fused(v, load(key[j] + d), acc[j]);
    }
    fold_add_4(acc[0], acc[1], acc[2], acc[3], out);
}

/// out = sum of p[j] * v[j] for Vectors vectors of Heads heads, keys in order, merged into `state`.
template <size_t Heads, size_t Vectors>
void weigh_values(const AttentionBlock& block, const float (*p)[key_block], const float* keep,
                  const float* take, float* out, size_t d, bool first) noexcept {
    Lanes acc[Heads][Vectors];
    for (size_t h = 0; h < Heads; ++h) {
        for (size_t i = 0; i < Vectors; ++i)
            acc[h][i] = splat(0.0f);
    }
    for (size_t j = 0; j < block.keys; ++j) {
        const float* v = block.v + j * block.head_stride + d;
        for (size_t i = 0; i < Vectors; ++i) {
            const Lanes value = load(v + i * lanes);
            for (size_t h = 0; h < Heads; ++h)
                acc[h][i] = fused(splat(p[h][j]), value, acc[h][i]);
        }
    }
    for (size_t h = 0; h < Heads; ++h) {
        for (size_t i = 0; i < Vectors; ++i) {
            float* target = out + h * block.head_stride + d + i * lanes;
            const Lanes old = load(target);
            store(target,
                  first ? acc[h][i] : fused(old, splat(keep[h]), mul(acc[h][i], splat(take[h]))));
        }
    }
}

/// Two numbers through exp_lanes.
void exp_2(float a, float b, float* out) noexcept {
    float padded[lanes] = {a, b};
    store(padded, exp_lanes(load(padded)));
    out[0] = padded[0];
    out[1] = padded[1];
}

template <size_t Heads>
void attend_heads(const AttentionBlock& block, const AttentionState& state, size_t h0,
                  bool first) noexcept {
    const size_t stride = block.head_stride;
    alignas(64) float p[Heads][key_block];
    float keep[Heads], take[Heads];
    for (size_t h = 0; h < Heads; ++h) {
        const float* q = block.q + (h0 + h) * stride;
        for (size_t j = 0; j < block.keys; j += 4) {
            score_4(q, block.k + j * stride, block.keys - j, stride, p[h] + j);
        }
        const float nothing = -INFINITY;
        Lanes top = splat(nothing);
        for (size_t j = 0; j < block.keys; j += lanes) {
            const Lanes scores =
                mul(load_some(p[h] + j, block.keys - j, nothing), splat(block.scale));
            store(p[h] + j, scores);
            top = larger(scores, top);
        }
        const float largest = fold_max(top);
        Lanes sums = splat(0.0f);
        for (size_t j = 0; j < block.keys; j += lanes) {
            const Lanes e = exp_lanes(sub(load(p[h] + j), splat(largest)));
            store(p[h] + j, e);
            sums = add(sums, e);
        }
        const float sum = fold_add(sums);

        float& state_max = state.max[h0 + h];
        float& state_sum = state.sum[h0 + h];
        if (first) {
            state_max = largest;
            state_sum = sum;
            keep[h] = take[h] = 0;
            continue;
        }
        const float joint = state_max > largest ? state_max : largest;
        float factors[2];
        exp_2(state_max - joint, largest - joint, factors);
        keep[h] = factors[0];
        take[h] = factors[1];
        state_sum = fused_1(state_sum, keep[h], sum * take[h]);
        state_max = joint;
    }
    size_t d = 0;
    float* out = state.out + h0 * stride;
    for (; d + value_lanes * lanes <= stride; d += value_lanes * lanes) {
        weigh_values<Heads, value_lanes>(block, p, keep, take, out, d, first);
    }
    for (; d < stride; d += lanes)
        weigh_values<Heads, 1>(block, p, keep, take, out, d, first);
}

void attend(const AttentionBlock& block, const AttentionState& state, bool first) noexcept {
    size_t h = 0;
    for (; h + 3 <= block.heads; h += 3)
        attend_heads<3>(block, state, h, first);
    for (; h + 2 <= block.heads; h += 2)
        attend_heads<2>(block, state, h, first);
    for (; h < block.heads; ++h)
        attend_heads<1>(block, state, h, first);
}

void attend_finish(const AttentionState& state, size_t heads, size_t head_stride) noexcept {
    for (size_t h = 0; h < heads; ++h) {
        const Lanes inverse = splat(1.0f / state.sum[h]);
        float* out = state.out + h * head_stride;
        for (size_t d = 0; d < head_stride; d += lanes)
            store(out + d, mul(load(out + d), inverse));
    }
}

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

void install_float_kernels(Kernels& table) noexcept {
    table.quantize = quantize;
    table.matmul_f32 = matmul_f32;
    table.rmsnorm = rmsnorm;
    table.rope = rope;
    table.swiglu = swiglu;
    table.attend = attend;
    table.attend_finish = attend_finish;
    table.softmax = softmax;
    table.exp = exp_all;
}
