// SPDX-License-Identifier: MIT
// The forward pass: few fused parallel regions a layer, the same bits however they are cut.
#include "engine/session.h"

#include "engine/src/finite.h"
#include "engine/src/session_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace mnm {

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

void Session::State::feed_forward(std::size_t i, std::size_t count) {
    const Layer& layer = model.layers()[i];
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
    see(Observer::Place::down_input, i, inner.x.data(), count, ffn);
    project(layer.down, inner, count, residual.data(), true);
}

/// The tokens of one batch through all layers; leaves the residual stream of each in `residual`.
void Session::State::run_layers(std::span<const TokenId> tokens) {
    const std::size_t count = tokens.size();
    embed(tokens);
    rope.extend(position + count);
    for (std::size_t i = 0; i < config.layers; ++i) {
        const Layer& layer = model.layers()[i];
        see(Observer::Place::residual, i, residual.data(), count, config.width);
        each_token(count, [&](std::size_t t) {
            normalise(residual.data(), layer.attention_norm, hidden, t, t,
                      layer.qkv.type != WeightType::f32);
        });
        see(Observer::Place::attention_input, i, hidden.x.data(), count, config.width);
        project(layer.qkv, hidden, count, qkv.data(), false);
        each_token(count, [&](std::size_t t) { place_heads(i, t); });
        if (observer != nullptr) see_cache(i, count);
        attention(i, count);
        each_token(count, [&](std::size_t t) {
            for (std::size_t h = 0; h < config.heads; ++h) {
                std::memcpy(mixed.row(t) + h * config.head_dim,
                            attended.data() + (t * config.heads + h) * head_stride,
                            config.head_dim * sizeof(float));
            }
            if (layer.output.type != WeightType::f32) quantize(mixed, t * mixed.cols, mixed.cols);
        });
        see(Observer::Place::output_input, i, mixed.x.data(), count, mixed.cols);
        project(layer.output, mixed, count, residual.data(), true);
        each_token(count, [&](std::size_t t) {
            normalise(residual.data(), layer.ffn_norm, hidden, t, t,
                      layer.gate_up.type != WeightType::f32);
        });
        see(Observer::Place::ffn_input, i, hidden.x.data(), count, config.width);
        feed_forward(i, count);
    }
    see(Observer::Place::residual, config.layers, residual.data(), count, config.width);
    position += count;
}

/// Logits of tokens [first, first + count) of the batch, count <= logits_batch.
void Session::State::head(std::size_t first, std::size_t count) {
    for (std::size_t t = 0; t < count; ++t) {
        normalise(residual.data(), model.final_norm(), last, first + t, t,
                  model.head().type != WeightType::f32);
    }
    see(Observer::Place::head_input, config.layers, last.x.data(), count, config.width);
    project(model.head(), last, count, logits.data(), false);
    see(Observer::Place::logits, config.layers, logits.data(), count, config.vocab);
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

void Session::observe(Observer* observer) {
    state_->observer = observer;
}

std::size_t Session::cache_bytes() const {
    const ModelConfig& c = state_->config;
    return 2 * c.layers * c.kv_heads * c.context * state_->head_stride * sizeof(float);
}

} // namespace mnm
