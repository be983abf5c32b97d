// SPDX-License-Identifier: MIT
// Attention over a cache block, as a part of float_kernels.h: keys stand side by side, so a vector
// holds the scores of sixteen keys and nothing has to be folded; every load serves all the heads.
#pragma once

Lanes load_stored(const float* p) noexcept {
    return load(p);
}

/// Brings near what a vector of stored numbers at p takes.
template <class Stored>
void fetch_stored(const Stored* p) noexcept {
    for (size_t i = 0; i < lanes; i += 64 / sizeof(Stored))
        fetch(p + i);
}

/// p[h * key_block + j] = q[h] . k[j] for Vectors * 16 keys, while the same of `next` is fetched.
template <size_t Heads, size_t Vectors, bool Fetch, class Stored>
void score_keys(const float* q, size_t head_dim, const Stored* k, const Stored* next,
                float* p) noexcept {
    Lanes acc[Heads][Vectors];
    for (size_t h = 0; h < Heads; ++h) {
        for (size_t i = 0; i < Vectors; ++i)
            acc[h][i] = splat(0.0f);
    }
    for (size_t d = 0; d < head_dim; ++d, k += key_block, next += key_block) {
        Lanes keys[Vectors];
        for (size_t i = 0; i < Vectors; ++i) {
            keys[i] = held(load_stored(k + i * lanes));
            if (Fetch) fetch_stored(next + i * lanes);
        }
        for (size_t h = 0; h < Heads; ++h) {
            const Lanes number = splat(q[h * head_dim + d]);
            for (size_t i = 0; i < Vectors; ++i)
                acc[h][i] = fused(number, keys[i], acc[h][i]);
        }
    }
    for (size_t h = 0; h < Heads; ++h) {
        for (size_t i = 0; i < Vectors; ++i)
            store(p + h * key_block + i * lanes, acc[h][i]);
    }
}

/// How a block's softmax joins that of the blocks before: both times a power of e.
template <size_t Heads>
struct Joining {
    bool first;
    float keep[Heads], take[Heads];
};

/// Joins a block's largest score and sum to those of the blocks before it.
template <size_t Heads>
Joining<Heads> join_sums(float* max, float* sum, const float* next_max, const float* next_sum,
                         bool first) noexcept {
    static_assert(2 * Heads <= lanes);
    Joining<Heads> joining{first, {}, {}};
    float powers[lanes] = {};
    for (size_t h = 0; h < Heads; ++h) {
        const float before = first ? next_max[h] : max[h];
        max[h] = before > next_max[h] ? before : next_max[h];
        powers[2 * h] = before - max[h];
        powers[2 * h + 1] = next_max[h] - max[h];
    }
    if (!first) store(powers, exp_lanes(load(powers)));
    for (size_t h = 0; h < Heads; ++h) {
        joining.keep[h] = powers[2 * h];
        joining.take[h] = powers[2 * h + 1];
        sum[h] =
            first ? next_sum[h] : fused_1(sum[h], joining.keep[h], next_sum[h] * joining.take[h]);
    }
    return joining;
}

/// Sums of p[j] * v[j] for Vectors vectors of Heads heads, keys in order, joined to out; while the
/// same of `next` is fetched.
template <size_t Heads, size_t Vectors, bool Fetch, class Stored>
void weigh_values(const float (*p)[key_block], size_t keys, const Stored* v, const Stored* next,
                  size_t stride, const Joining<Heads>& joining, float* out) noexcept {
    Lanes acc[Heads][Vectors];
    for (size_t h = 0; h < Heads; ++h) {
        for (size_t i = 0; i < Vectors; ++i)
            acc[h][i] = splat(0.0f);
    }
    for (size_t j = 0; j < keys; ++j, v += stride, next += stride) {
        Lanes weight[Heads];
        for (size_t h = 0; h < Heads; ++h)
            weight[h] = held(splat(p[h][j]));
        for (size_t i = 0; i < Vectors; ++i) {
            const Lanes value = held(load_stored(v + i * lanes));
            if (Fetch) fetch_stored(next + i * lanes);
            for (size_t h = 0; h < Heads; ++h)
                acc[h][i] = fused(weight[h], value, acc[h][i]);
        }
    }
    for (size_t h = 0; h < Heads; ++h) {
        float* y = out + h * stride;
        for (size_t i = 0; i < Vectors; ++i, y += lanes) {
            if (joining.first) {
                store(y, acc[h][i]);
            } else {
                const Lanes more = mul(acc[h][i], splat(joining.take[h]));
                store(y, fused(load(y), splat(joining.keep[h]), more));
            }
        }
    }
}

/// x[j] *= y[j].
void scale_keys(float* x, const float* y, size_t keys) noexcept {
    for (size_t j = 0; j < keys; j += lanes)
        store(x + j, mul(load(x + j), load(y + j)));
}

template <size_t Heads, bool Fetch, class Stored>
void attend_heads(const AttentionBlock& block, const AttentionState& state, size_t h0) noexcept {
    const size_t keys = block.keys, dim = block.head_dim, stride = padded(dim);
    const bool scaled = block.type == CacheType::q8;
    const auto* k = static_cast<const Stored*>(block.k);
    const auto* v = static_cast<const Stored*>(block.v);
    const auto* next_k = Fetch ? static_cast<const Stored*>(block.next_k) : k;
    const auto* next_v = Fetch ? static_cast<const Stored*>(block.next_v) : v;
    alignas(64) float p[Heads][key_block];
    float largest[Heads], sum[Heads];
    if (keys <= lanes) {
        score_keys<Heads, 1, Fetch>(block.q + h0 * dim, dim, k, next_k, p[0]);
    } else {
        for (size_t j = 0; j < keys; j += score_vectors * lanes)
            score_keys<Heads, score_vectors, Fetch>(block.q + h0 * dim, dim, k + j, next_k + j,
                                                    p[0] + j);
    }
    for (size_t h = 0; h < Heads; ++h) {
        if (scaled) scale_keys(p[h], block.k_scale, keys);
        const float nothing = -INFINITY;
        Lanes top = splat(nothing);
        for (size_t j = 0; j < keys; j += lanes) {
            const Lanes scores = mul(load_some(p[h] + j, keys - j, nothing), splat(block.scale));
            store(p[h] + j, scores);
            top = larger(scores, top);
        }
        largest[h] = fold_max(top);
        Lanes sums = splat(0.0f);
        for (size_t j = 0; j < keys; j += lanes) {
            const Lanes e = exp_lanes(sub(load(p[h] + j), splat(largest[h])));
            store(p[h] + j, e);
            sums = add(sums, e);
        }
        sum[h] = fold_add(sums);
        if (scaled) scale_keys(p[h], block.v_scale, keys);
    }
    const Joining<Heads> joining =
        join_sums<Heads>(state.max + h0, state.sum + h0, largest, sum, block.first);
    size_t d = 0;
    float* out = state.out + h0 * stride;
    for (; d + value_vectors * lanes <= stride; d += value_vectors * lanes)
        weigh_values<Heads, value_vectors, Fetch>(p, keys, v + d, next_v + d, stride, joining,
                                                  out + d);
    for (; d < stride; d += lanes)
        weigh_values<Heads, 1, Fetch>(p, keys, v + d, next_v + d, stride, joining, out + d);
}

template <bool Fetch, class Stored>
void attend_groups(const AttentionBlock& block, const AttentionState& state) noexcept {
    size_t h = 0;
    for (; h + 3 <= block.heads; h += 3)
        attend_heads<3, Fetch, Stored>(block, state, h);
    for (; h + 2 <= block.heads; h += 2)
        attend_heads<2, Fetch, Stored>(block, state, h);
    for (; h < block.heads; ++h)
        attend_heads<1, Fetch, Stored>(block, state, h);
}

template <class Stored>
void attend_stored(const AttentionBlock& block, const AttentionState& state) noexcept {
    if (block.next_k == nullptr)
        attend_groups<false, Stored>(block, state);
    else
        attend_groups<true, Stored>(block, state);
}

void attend(const AttentionBlock& block, const AttentionState& state) noexcept {
    switch (block.type) {
    case CacheType::f32:
        attend_stored<float>(block, state);
        break;
    case CacheType::f16:
        attend_stored<uint16_t>(block, state);
        break;
    case CacheType::q8:
        attend_stored<int8_t>(block, state);
    }
}

void attend_merge(const AttentionState& state, const AttentionState& next, size_t heads,
                  size_t head_dim) noexcept {
    const size_t stride = padded(head_dim);
    for (size_t h = 0; h < heads; ++h) {
        const Joining<1> joining =
            join_sums<1>(state.max + h, state.sum + h, next.max + h, next.sum + h, false);
        const Lanes keep = splat(joining.keep[0]), take = splat(joining.take[0]);
        float* out = state.out + h * stride;
        const float* more = next.out + h * stride;
        for (size_t d = 0; d < stride; d += lanes)
            store(out + d, fused(load(out + d), keep, mul(load(more + d), take)));
    }
}

void attend_finish(const AttentionState& state, size_t heads, size_t head_dim, float* y) noexcept {
    for (size_t h = 0; h < heads; ++h, y += head_dim) {
        const Lanes inverse = splat(1.0f / state.sum[h]);
        const float* out = state.out + h * padded(head_dim);
        size_t d = 0;
        for (; d + lanes <= head_dim; d += lanes)
            store(y + d, mul(load(out + d), inverse));
        if (d < head_dim) {
            float rest[lanes];
            store(rest, mul(load(out + d), inverse));
            for (size_t i = 0; d + i < head_dim; ++i)
                y[d + i] = rest[i];
        }
    }
}
