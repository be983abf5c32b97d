// SPDX-License-Identifier: MIT
// Attention: heads go into the cache, and queries walk it in key blocks counted from position 0.
#include "engine/src/session_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mnm {
namespace {

/// Tokens whose attention walks the cache together, so that a key block is read once for all.
constexpr std::size_t attention_tile = 8;

} // namespace

/// Rotates a token's queries and keys and puts keys and values into the cache.
void Session::State::place_heads(std::size_t layer, std::size_t token) {
    const std::size_t dim = config.head_dim, place = position + token;
    const std::size_t bytes = dim * sizeof(float);
    const float* turn = rope.row(place);
    const float* source = qkv.data() + token * config.qkv_rows();
    for (std::size_t h = 0; h < config.heads; ++h, source += dim) {
        float* q = queries.data() + (token * config.heads + h) * head_stride;
        std::memcpy(q, source, bytes);
        kernel.rope(q, dim, turn);
    }
    for (std::size_t h = 0; h < config.kv_heads; ++h, source += dim) {
        float* k = cache(keys, layer, h) + place * head_stride;
        std::memcpy(k, source, bytes);
        kernel.rope(k, dim, turn);
    }
    for (std::size_t h = 0; h < config.kv_heads; ++h, source += dim) {
        std::memcpy(cache(values, layer, h) + place * head_stride, source, bytes);
    }
}

void Session::State::see_cache(std::size_t layer, std::size_t count) const {
    const auto show = [&](Observer::Place place, const Floats& side) {
        for (std::size_t h = 0; h < config.kv_heads; ++h) {
            observer->see(place, layer,
                          {cache(side, layer, h) + position * head_stride, count, config.head_dim,
                           head_stride});
        }
    };
    show(Observer::Place::key, keys);
    show(Observer::Place::value, values);
}

/// Attention of the query heads that share one key/value head, for tokens [begin, end): the cache
/// is walked in blocks from position 0, and each block merged in order.
void Session::State::attend_tile(std::size_t layer, std::size_t kv_head, std::size_t begin,
                                 std::size_t end) {
    const std::size_t group = config.heads / config.kv_heads, first = kv_head * group;
    const float* k = cache(keys, layer, kv_head);
    const float* v = cache(values, layer, kv_head);
    const float scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
    auto state_of = [&](std::size_t t) {
        const std::size_t index = t * config.heads + first;
        return kernels::AttentionState{state.data() + index,
                                       state.data() + batch * config.heads + index,
                                       attended.data() + index * head_stride};
    };
    for (std::size_t block = 0; block < position + end; block += kernels::key_block) {
        for (std::size_t t = begin; t < end; ++t) {
            const std::size_t visible = position + t + 1;
            if (visible <= block) continue;
            kernel.attend({queries.data() + (t * config.heads + first) * head_stride,
                           k + block * head_stride, v + block * head_stride, group,
                           std::min(visible - block, kernels::key_block), head_stride, scale},
                          state_of(t), block == 0);
        }
    }
    for (std::size_t t = begin; t < end; ++t)
        kernel.attend_finish(state_of(t), group, head_stride);
}

void Session::State::attention(std::size_t layer, std::size_t count) {
    // Later tokens see more keys: early and late tiles alternate, so ranges hold equal work.
    const std::size_t tiles = (count + attention_tile - 1) / attention_tile;
    const std::size_t read = 2 * (position + count) * config.kv_heads * head_stride * sizeof(float);
    share(config.kv_heads * tiles, 1, read * count, [&](std::size_t b, std::size_t e, unsigned) {
        for (std::size_t i = b; i < e; ++i) {
            const std::size_t turn = i / config.kv_heads;
            const std::size_t tile = turn % 2 == 0 ? turn / 2 : tiles - 1 - turn / 2;
            const std::size_t start = tile * attention_tile;
            attend_tile(layer, i % config.kv_heads, start, std::min(start + attention_tile, count));
        }
    });
}

} // namespace mnm
