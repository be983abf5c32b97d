// SPDX-License-Identifier: MIT
// Attention: heads go into the cache, and queries walk it in key blocks counted from position 0.
#include "engine/src/session_state.h"

#include <algorithm>
#include <cmath>

namespace mnm {
namespace {

/// Tokens whose attention walks the cache together, so that a key block is read once for all.
constexpr std::size_t attention_tile = 8;

} // namespace

/// Turns a token's queries and keys where they are, by its place.
void Session::State::rotate(std::size_t token) {
    const std::size_t dim = config.head_dim;
    const float* turn = rope.row(position + token);
    float* head = qkv.data() + token * config.qkv_rows();
    for (std::size_t h = 0; h < config.heads + config.kv_heads; ++h)
        kernel.rope(head + h * dim, dim, turn);
}

/// Puts tokens [begin, end) into the cache, a head at a time: the lines that its keys go to fit
/// into the first cache level, those of all heads do not.
void Session::State::remember(std::size_t layer, std::size_t begin, std::size_t end) {
    const std::size_t dim = config.head_dim;
    for (std::size_t h = 0; h < config.kv_heads; ++h) {
        for (std::size_t t = begin; t < end; ++t) {
            const float* key = qkv.data() + t * config.qkv_rows() + config.q_rows() + h * dim;
            cache.put(kernel, layer, h, position + t, key, key + config.kv_heads * dim);
        }
    }
}

void Session::State::see_keys_and_values(std::size_t layer, std::size_t count) const {
    const std::size_t dim = config.head_dim, stride = config.qkv_rows();
    float* keys = qkv.data() + config.q_rows();
    float* values = keys + config.kv_heads * dim;
    for (std::size_t h = 0; h < config.kv_heads; ++h)
        observer->see(Observer::Place::key, layer, {keys + h * dim, count, dim, stride});
    for (std::size_t h = 0; h < config.kv_heads; ++h)
        observer->see(Observer::Place::value, layer, {values + h * dim, count, dim, stride});
}

/// The softmax of one block for the query heads that share a key/value head, joined to `state`
/// unless that is `fresh`. `fetch` brings the next block near meanwhile.
void Session::State::attend_block(std::size_t layer, std::size_t kv_head, std::size_t token,
                                  std::size_t b, const kernels::AttentionState& state, bool fresh,
                                  bool fetch) const {
    const std::size_t group = config.heads / config.kv_heads;
    const std::size_t visible = position + token + 1 - b * kernels::key_block;
    kernels::AttentionBlock block = cache.block(layer, kv_head, b);
    block.q = qkv.data() + token * config.qkv_rows() + kv_head * group * config.head_dim;
    block.heads = group;
    block.keys = std::min(visible, kernels::key_block);
    block.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
    block.first = fresh;
    if (fetch && visible > kernels::key_block) {
        const kernels::AttentionBlock next = cache.block(layer, kv_head, b + 1);
        block.next_k = next.k;
        block.next_v = next.v;
    }
    kernel.attend(block, state);
}

/// Whether the heads that share a key/value head end where a group of the quantiser does.
bool Session::State::heads_fill_groups() const {
    return config.heads / config.kv_heads * config.head_dim % kernels::group == 0;
}

void Session::State::finish_heads(std::size_t layer, std::size_t kv_head, std::size_t token,
                                  const kernels::AttentionState& state) {
    const std::size_t group = config.heads / config.kv_heads, width = group * config.head_dim;
    const bool quantise =
        model.layers()[layer].output.type != WeightType::f32 && heads_fill_groups();
    // Floats that nobody reads stay where they are.
    const bool floats = !quantise || observer != nullptr;
    float* y = floats ? mixed.row(token) + kv_head * width : state.out;
    kernel.attend_finish(state, group, config.head_dim, y);
    if (quantise) quantize(y, mixed, token * mixed.cols + kv_head * width, width);
}

/// Tokens [begin, end): the cache is walked once for all, and each block joined in order.
void Session::State::attend_tile(std::size_t layer, std::size_t kv_head, std::size_t begin,
                                 std::size_t end) {
    for (std::size_t b = 0; b * kernels::key_block < position + end; ++b) {
        for (std::size_t t = begin; t < end; ++t) {
            if (position + t < b * kernels::key_block) continue;
            attend_block(layer, kv_head, t, b, states.at(t * config.kv_heads + kv_head), b == 0,
                         t + 1 == end);
        }
    }
    for (std::size_t t = begin; t < end; ++t)
        finish_heads(layer, kv_head, t, states.at(t * config.kv_heads + kv_head));
}

/// One token, its blocks shared among the threads: for fewer heads than threads.
void Session::State::attend_split(std::size_t layer) {
    const std::size_t blocks = position / kernels::key_block + 1, heads = config.kv_heads;
    const std::size_t group = config.heads / heads;
    parallel.for_ranges(blocks * heads, 1, [&](std::size_t begin, std::size_t end, unsigned) {
        for (std::size_t i = begin; i < end; ++i)
            attend_block(layer, i % heads, 0, i / heads, parts.at(i), true, true);
    });
    for (std::size_t h = 0; h < heads; ++h) {
        const kernels::AttentionState state = parts.at(h);
        for (std::size_t b = 1; b < blocks; ++b)
            kernel.attend_merge(state, parts.at(b * heads + h), group, config.head_dim);
        finish_heads(layer, h, 0, state);
    }
}

void Session::State::attention(std::size_t layer, std::size_t count) {
    // Later tokens see more keys: early and late tiles alternate, so ranges hold equal work.
    const std::size_t tiles = (count + attention_tile - 1) / attention_tile;
    const std::size_t items = config.kv_heads * tiles, read = cache.bytes_read(position + count);
    const std::size_t threads = parallel.threads();
    if (count == 1 && items % threads != 0 && items < 4 * threads && read >= shared_work) {
        attend_split(layer);
        return;
    }
    share(items, 1, read, count, [&](std::size_t b, std::size_t e, unsigned) {
        for (std::size_t i = b; i < e; ++i) {
            const std::size_t turn = i / config.kv_heads;
            const std::size_t tile = turn % 2 == 0 ? turn / 2 : tiles - 1 - turn / 2;
            const std::size_t start = tile * attention_tile;
            attend_tile(layer, i % config.kv_heads, start, std::min(start + attention_tile, count));
        }
    });
}

} // namespace mnm
