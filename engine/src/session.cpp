// SPDX-License-Identifier: MIT
// The forward pass: few fused parallel regions a layer, the same bits however they are cut.
#include "engine/session.h"

#include "engine/src/activations.h"
#include "engine/src/finite.h"
#include "engine/src/rope_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

namespace mnm {
namespace {

/// Tokens computed together; bounds the activation buffers.
constexpr std::size_t batch_limit = 256;
/// Logits computed together in forward_all.
constexpr std::size_t logits_batch = 16;
/// Tokens whose attention walks the cache together, so that a key block is read once for all.
constexpr std::size_t attention_tile = 8;

/// Work, in weight bytes times tokens, below which sharing a product costs more than it saves.
constexpr std::size_t shared_work = std::size_t{512} << 10;

} // namespace

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
    void feed_forward(const Layer& layer, std::size_t count);
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

void Session::State::embed(std::span<const TokenId> tokens) {
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        model.embedding().decode_row(tokens[t], residual.data() + t * config.width);
    }
}

/// Values [offset, offset + n) of the whole array; both multiples of a group.
void Session::State::quantize(Activations& a, std::size_t offset, std::size_t n) const {
    kernel.quantize(a.x.data() + offset, n, a.q.data() + offset,
                    a.scale.data() + offset / kernels::group,
                    a.sum.data() + offset / kernels::group);
}

void Session::State::normalise(const float* source, const float* weight, Activations& target,
                               std::size_t source_token, std::size_t token, bool quantise) {
    kernel.rmsnorm(source + source_token * config.width, weight, config.width,
                   static_cast<float>(config.norm_eps), target.row(token));
    if (quantise) quantize(target, token * config.width, config.width);
}

void Session::State::multiply(const Matrix& w, const Activations& a, std::size_t count,
                              std::size_t begin, std::size_t end, const kernels::Target& target,
                              unsigned worker) {
    void* space = scratch->data() + worker * scratch_floats;
    const kernels::QuantizedRows quantized{a.q.data(), a.scale.data(), a.sum.data(), count, a.cols};
    switch (w.type) {
    case WeightType::q8:
        kernel.matmul_q8(reinterpret_cast<const std::int8_t*>(w.data), w.scales, begin, end,
                         quantized, target, space);
        break;
    case WeightType::q4:
        kernel.matmul_q4(reinterpret_cast<const std::uint8_t*>(w.data), w.scales, begin, end,
                         quantized, target, space);
        break;
    default: // Model::bind lets nothing else through
        kernel.matmul_f32(reinterpret_cast<const float*>(w.data), begin, end,
                          {a.x.data(), count, a.cols}, target, space);
    }
}

void Session::State::project(const Matrix& w, const Activations& a, std::size_t count, float* y,
                             bool add) {
    share(w.rows, kernels::row_block, w.bytes() * count,
          [&](std::size_t begin, std::size_t end, unsigned worker) {
              multiply(w, a, count, begin, end, {y, w.rows, add}, worker);
          });
}

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

void Session::State::feed_forward(const Layer& layer, std::size_t count) {
    const std::size_t ffn = config.ffn;
    const bool quantise = layer.down.type != WeightType::f32;
    share(ffn, kernels::group, layer.gate_up.bytes() * count,
          [&](std::size_t begin, std::size_t end, unsigned worker) {
              const kernels::Target target{gate_up.data(), 2 * ffn, false};
              multiply(layer.gate_up, hidden, count, begin, end, target, worker);
              multiply(layer.gate_up, hidden, count, ffn + begin, ffn + end, target, worker);
              for (std::size_t t = 0; t < count; ++t) {
                  const float* gate = gate_up.data() + t * 2 * ffn;
                  float* y = inner.row(t) + begin;
                  kernel.swiglu(gate + begin, gate + ffn + begin, end - begin, y);
                  if (quantise) quantize(inner, t * ffn + begin, end - begin);
              }
          });
    project(layer.down, inner, count, residual.data(), true);
}

/// The tokens of one batch through all layers; leaves the residual stream of each in `residual`.
void Session::State::run_layers(std::span<const TokenId> tokens) {
    const std::size_t count = tokens.size();
    embed(tokens);
    rope.extend(position + count);
    for (std::size_t i = 0; i < config.layers; ++i) {
        const Layer& layer = model.layers()[i];
        each_token(count, [&](std::size_t t) {
            normalise(residual.data(), layer.attention_norm, hidden, t, t,
                      layer.qkv.type != WeightType::f32);
        });
        project(layer.qkv, hidden, count, qkv.data(), false);
        each_token(count, [&](std::size_t t) { place_heads(i, t); });
        attention(i, count);
        each_token(count, [&](std::size_t t) {
            for (std::size_t h = 0; h < config.heads; ++h) {
                std::memcpy(mixed.row(t) + h * config.head_dim,
                            attended.data() + (t * config.heads + h) * head_stride,
                            config.head_dim * sizeof(float));
            }
            if (layer.output.type != WeightType::f32) quantize(mixed, t * mixed.cols, mixed.cols);
        });
        project(layer.output, mixed, count, residual.data(), true);
        each_token(count, [&](std::size_t t) {
            normalise(residual.data(), layer.ffn_norm, hidden, t, t,
                      layer.gate_up.type != WeightType::f32);
        });
        feed_forward(layer, count);
    }
    position += count;
}

/// Logits of tokens [first, first + count) of the batch, count <= logits_batch.
void Session::State::head(std::size_t first, std::size_t count) {
    for (std::size_t t = 0; t < count; ++t) {
        normalise(residual.data(), model.final_norm(), last, first + t, t,
                  model.head().type != WeightType::f32);
    }
    project(model.head(), last, count, logits.data(), false);
}

Result<void> Session::State::check(std::span<const TokenId> tokens) const {
    const std::string& file = model.file().path();
    if (tokens.empty()) return Error{fmt::format("{}: no tokens to evaluate", file)};
    if (tokens.size() > config.context - position) {
        return Error{fmt::format("{}: {} tokens after {} exceed the context of {}", file,
                                 tokens.size(), position, config.context)};
    }
    for (const TokenId id : tokens) {
        if (id >= config.vocab) {
            return Error{fmt::format("{}: token {} is outside the vocabulary of {}", file, id,
                                     config.vocab)};
        }
    }
    return {};
}

Result<void> Session::State::check_logits(std::size_t place, const float* row) const {
    if (all_within(row, config.vocab, std::numeric_limits<float>::max())) return {};
    return Error{
        fmt::format("{}: the logits after token {} are not finite; the weights are damaged "
                    "or too large for float (did the training diverge?)",
                    model.file().path(), place)};
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

Result<Session> Session::create(const Model& model, const kernels::Kernels& kernels,
                                Parallel& parallel) {
    try {
        return Session(std::make_unique<State>(model, kernels, parallel));
    } catch (const std::bad_alloc&) {
        const ModelConfig& c = model.config();
        return Error{
            fmt::format("{}: not enough memory for a context of {} ({} layers, {} key/value "
                        "heads of {})",
                        model.file().path(), c.context, c.layers, c.kv_heads, c.head_dim)};
    }
}

Result<std::span<const float>> Session::forward(std::span<const TokenId> tokens) {
    State& s = *state_;
    MNM_CHECK(s.check(tokens));
    s.together(tokens.size(), [&] {
        for (std::size_t done = 0; done < tokens.size();) {
            const std::size_t count = std::min(s.batch, tokens.size() - done);
            s.run_layers(tokens.subspan(done, count));
            done += count;
            if (done == tokens.size()) s.head(count - 1, 1);
        }
    });
    MNM_CHECK(s.check_logits(s.position - 1, s.logits.data()));
    return std::span<const float>(s.logits.data(), s.config.vocab);
}

Result<void>
Session::forward_all(std::span<const TokenId> tokens,
                     const std::function<void(std::size_t, std::span<const float>)>& row) {
    State& s = *state_;
    MNM_CHECK(s.check(tokens));
    const std::size_t vocab = s.config.vocab;
    for (std::size_t done = 0; done < tokens.size();) {
        const std::size_t count = std::min(s.batch, tokens.size() - done);
        s.together(count, [&] { s.run_layers(tokens.subspan(done, count)); });
        for (std::size_t first = 0; first < count; first += logits_batch) {
            const std::size_t some = std::min(logits_batch, count - first);
            s.parallel.enter([&] { s.head(first, some); });
            for (std::size_t t = 0; t < some; ++t) {
                const std::size_t place = s.position - count + first + t;
                MNM_CHECK(s.check_logits(place, s.logits.data() + t * vocab));
                row(done + first + t, {s.logits.data() + t * vocab, vocab});
            }
        }
        done += count;
    }
    return {};
}

std::size_t Session::position() const {
    return state_->position;
}

void Session::rewind(std::size_t position) {
    state_->position = std::min(position, state_->position);
}

std::size_t Session::cache_bytes() const {
    const ModelConfig& c = state_->config;
    return 2 * c.layers * c.kv_heads * c.context * state_->head_stride * sizeof(float);
}

} // namespace mnm
