// SPDX-License-Identifier: MIT
// What a session holds between and during its passes, and the passes themselves.
#pragma once

#include "engine/observer.h"
#include "engine/profile.h"
#include "engine/session.h"
#include "engine/src/activations.h"
#include "engine/src/key_value_cache.h"
#include "engine/src/rope_table.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace mnm {

/// Tokens computed together; bounds the activation buffers.
inline constexpr std::size_t batch_limit = 512;
/// Logits computed together in forward_all.
inline constexpr std::size_t logits_batch = 16;
/// Work, in weight bytes times tokens, below which sharing a product costs more than it saves.
inline constexpr std::size_t shared_work = std::size_t{512} << 10;

struct Session::State {
    State(const Model& m, const kernels::Kernels& k, Parallel& p, CacheType type)
        : model(m), config(m.config()), kernel(k), parallel(p), rope(m.config()),
          cache(m.config(), type), batch(std::min<std::size_t>(batch_limit, config.context)),
          residual(batch * config.width), qkv(batch * config.qkv_rows()),
          states(batch * config.kv_heads, config.heads / config.kv_heads, config.head_dim),
          parts(cache.blocks() * config.kv_heads, config.heads / config.kv_heads, config.head_dim),
          normed(p.threads() * config.width), hidden(batch, config.width),
          mixed(batch, config.q_rows()), inner(batch, config.ffn),
          gate_up_floats(2 * std::max<std::size_t>(batch * kernels::group, config.ffn)),
          gate_up(gate_up_floats * p.threads()), last(logits_batch, config.width),
          logits(logits_batch * config.vocab) {
        std::size_t widest = std::max({config.width, config.q_rows(), config.ffn});
        const std::size_t bytes = (kernels::matmul_scratch(widest) + 63) / 64 * 64;
        scratch_floats = bytes / sizeof(float);
        scratch = std::make_unique<Floats>(scratch_floats * parallel.threads());
    }

    const Model& model;
    const ModelConfig& config;
    const kernels::Kernels& kernel;
    Parallel& parallel;
    Observer* observer = nullptr;
    Profile* profile = nullptr;
    RopeTable rope;
    KeyValueCache cache;
    std::size_t batch;
    std::size_t position = 0;
    Floats residual;        ///< [batch][D]
    Floats qkv;             ///< [batch][QKV]
    AttentionStates states; ///< [batch][kv heads]
    AttentionStates parts;  ///< [blocks][kv heads]: one token's
    Floats normed;          ///< [threads][D]: a token after the norm, if nobody else wants it
    Activations hidden;     ///< [batch][D]
    Activations mixed;      ///< [batch][QD]
    Activations inner;      ///< [batch][F]
    std::size_t gate_up_floats;
    Floats gate_up;   ///< [threads][2][batch][group], or [threads][2][F] for one token
    Activations last; ///< [logits_batch][D], after the final norm
    Floats logits;    ///< [logits_batch][V]
    std::size_t scratch_floats = 0;
    std::unique_ptr<Floats> scratch; ///< [threads]

    void lap(Phase phase) const {
        if (profile != nullptr) profile->lap(phase);
    }
    /// Shows `count` rows of `width` to the observer, if there is one.
    void see(Observer::Place place, std::size_t layer, float* data, std::size_t count,
             std::size_t width) const {
        if (observer != nullptr) observer->see(place, layer, {data, count, width, width});
    }
    void see_keys_and_values(std::size_t layer, std::size_t count) const;

    void embed(std::span<const TokenId> tokens);
    void quantize(const float* x, Activations& a, std::size_t offset, std::size_t n) const;
    void normalise(const float* source, const float* weight, WeightType next, Activations& target,
                   std::size_t token, unsigned worker);
    void multiply(const Matrix& w, const Activations& a, std::size_t count, std::size_t begin,
                  std::size_t end, const kernels::Target& target, unsigned worker);
    void project(const Matrix& w, const Activations& a, std::size_t count, float* y, bool add);
    void rotate(std::size_t token);
    void remember(std::size_t layer, std::size_t begin, std::size_t end);
    void attend_block(std::size_t layer, std::size_t kv_head, std::size_t token, std::size_t b,
                      const kernels::AttentionState& state, bool fresh, bool fetch) const;
    void attend_tile(std::size_t layer, std::size_t kv_head, std::size_t begin, std::size_t end);
    void attend_split(std::size_t layer);
    void finish_heads(std::size_t layer, std::size_t kv_head, std::size_t token,
                      const kernels::AttentionState& state);
    bool heads_fill_groups() const;
    void attention(std::size_t layer, std::size_t count);
    void gate_and_up(const Layer& layer, std::size_t count, std::size_t begin, std::size_t end,
                     unsigned worker);
    void quantize_swiglu(float* gate, const float* up, std::size_t count, std::size_t row);
    void feed_forward(std::size_t layer, std::size_t count);
    void run_layers(std::span<const TokenId> tokens);
    void head(std::size_t first, std::size_t count);
    template <class Body>
    void ranges(std::size_t count, Body&& body);
    template <class Body>
    void each_token(std::size_t count, Body&& body);
    template <class Body>
    void share(std::size_t n, std::size_t grain, std::size_t bytes, std::size_t count, Body&& body);
    template <class Pass>
    void together(std::size_t count, Pass&& pass);

    Result<void> check(std::span<const TokenId> tokens) const;
    Result<void> check_logits(std::size_t place, const float* row) const;
};

/// Ranges of tokens. One token is done at once by the caller: waking a thread would cost more.
template <class Body>
void Session::State::ranges(std::size_t count, Body&& body) {
    if (count == 1) {
        body(std::size_t{0}, count, 0U);
    } else {
        parallel.for_ranges(count, 1, body);
    }
}

template <class Body>
void Session::State::each_token(std::size_t count, Body&& body) {
    ranges(count, [&](std::size_t begin, std::size_t end, unsigned worker) {
        for (std::size_t t = begin; t < end; ++t)
            body(t, worker);
    });
}

/// Ranges over [0, n) of the work of `count` tokens by the team, or by the caller alone when there
/// is too little to do. `bytes` is what each token would read alone.
template <class Body>
void Session::State::share(std::size_t n, std::size_t grain, std::size_t bytes, std::size_t count,
                           Body&& body) {
    if (bytes * count < shared_work) {
        body(std::size_t{0}, n, 0U);
    } else {
        parallel.for_ranges(n, grain, body,
                            count == 1 ? Parallel::few_parts : Parallel::many_parts);
    }
}

/// A pass of `count` tokens, with the team gathered if any product of a layer is worth sharing.
template <class Pass>
void Session::State::together(std::size_t count, Pass&& pass) {
    const Layer& layer = model.layers().front();
    if (std::max(layer.gate_up.bytes(), layer.qkv.bytes()) * count < shared_work) {
        pass();
    } else {
        parallel.enter(pass);
    }
}

} // namespace mnm
