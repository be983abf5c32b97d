// SPDX-License-Identifier: MIT
// What a session holds between and during its passes, and the passes themselves.
#pragma once

#include "engine/observer.h"
#include "engine/session.h"
#include "engine/src/activations.h"
#include "engine/src/rope_table.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace mnm {

/// Tokens computed together; bounds the activation buffers.
inline constexpr std::size_t batch_limit = 256;
/// Logits computed together in forward_all.
inline constexpr std::size_t logits_batch = 16;
/// Work, in weight bytes times tokens, below which sharing a product costs more than it saves.
inline constexpr std::size_t shared_work = std::size_t{512} << 10;

struct Session::State {
    State(const Model& m, const kernels::Kernels& k, Parallel& p)
        : model(m), config(m.config()), kernel(k), parallel(p), rope(m.config()),
          head_stride((config.head_dim + kernels::lanes - 1) / kernels::lanes * kernels::lanes),
          batch(std::min<std::size_t>(batch_limit, config.context)),
          keys(config.layers * config.kv_heads * config.context * head_stride),
          values(config.layers * config.kv_heads * config.context * head_stride),
          residual(batch * config.width), qkv(batch * config.qkv_rows()),
          queries(batch * config.heads * head_stride), attended(batch * config.heads * head_stride),
          state(2 * batch * config.heads), hidden(batch, config.width),
          mixed(batch, config.q_rows()), inner(batch, config.ffn), gate_up(batch * 2 * config.ffn),
          last(logits_batch, config.width), logits(logits_batch * config.vocab) {
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
    RopeTable rope;
    std::size_t head_stride; ///< head_dim, padded to lanes
    std::size_t batch;
    std::size_t position = 0;
    Floats keys;        ///< [layer][kv head][T][head_stride]
    Floats values;      ///< [layer][kv head][T][head_stride]
    Floats residual;    ///< [batch][D]
    Floats qkv;         ///< [batch][QKV]
    Floats queries;     ///< [batch][H][head_stride], zero-padded
    Floats attended;    ///< [batch][H][head_stride]
    Floats state;       ///< [batch][H] maxima, then [batch][H] sums
    Activations hidden; ///< [batch][D]
    Activations mixed;  ///< [batch][QD]
    Activations inner;  ///< [batch][F]
    Floats gate_up;     ///< [batch][2 F]
    Activations last;   ///< [logits_batch][D], after the final norm
    Floats logits;      ///< [logits_batch][V]
    std::size_t scratch_floats = 0;
    std::unique_ptr<Floats> scratch; ///< [threads]

    float* cache(const Floats& side, std::size_t layer, std::size_t kv_head) const {
        return side.data() + (layer * config.kv_heads + kv_head) * config.context * head_stride;
    }

    /// Shows `count` rows of `width` to the observer, if there is one.
    void see(Observer::Place place, std::size_t layer, float* data, std::size_t count,
             std::size_t width) const {
        if (observer != nullptr) observer->see(place, layer, {data, count, width, width});
    }
    /// The same for the keys and values of the batch's tokens.
    void see_cache(std::size_t layer, std::size_t count) const;

    void embed(std::span<const TokenId> tokens);
    void quantize(Activations& a, std::size_t offset, std::size_t n) const;
    void normalise(const float* source, const float* weight, Activations& target,
                   std::size_t source_token, std::size_t token, bool quantise);
    void multiply(const Matrix& w, const Activations& a, std::size_t count, std::size_t begin,
                  std::size_t end, const kernels::Target& target, unsigned worker);
    void project(const Matrix& w, const Activations& a, std::size_t count, float* y, bool add);
    void place_heads(std::size_t layer, std::size_t token);
    void attention(std::size_t layer, std::size_t count);
    void attend_tile(std::size_t layer, std::size_t kv_head, std::size_t begin, std::size_t end);
    void feed_forward(std::size_t layer, std::size_t count);
    void run_layers(std::span<const TokenId> tokens);
    void head(std::size_t first, std::size_t count);
    template <class Body>
    void each_token(std::size_t count, Body&& body);
    template <class Body>
    void share(std::size_t n, std::size_t grain, std::size_t work, Body&& body);
    template <class Pass>
    void together(std::size_t count, Pass&& pass);

    Result<void> check(std::span<const TokenId> tokens) const;
    Result<void> check_logits(std::size_t place, const float* row) const;
};

/// One token is done at once by the caller: waking a thread would cost more.
template <class Body>
void Session::State::each_token(std::size_t count, Body&& body) {
    if (count == 1) {
        body(std::size_t{0});
        return;
    }
    parallel.for_ranges(count, 1, [&](std::size_t begin, std::size_t end, unsigned) {
        for (std::size_t t = begin; t < end; ++t)
            body(t);
    });
}

/// Ranges over [0, n) by the team, or by the caller alone when there is too little to do.
template <class Body>
void Session::State::share(std::size_t n, std::size_t grain, std::size_t work, Body&& body) {
    if (work < shared_work) {
        body(std::size_t{0}, n, 0U);
    } else {
        parallel.for_ranges(n, grain, body);
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
