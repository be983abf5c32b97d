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

/// x as values [offset, offset + n) of the whole array; both multiples of a group.
void Session::State::quantize(const float* x, Activations& a, std::size_t offset,
                              std::size_t n) const {
    const std::size_t group = offset / kernels::group;
    kernel.quantize(x, n, a.q.data() + offset, a.scale.data() + group, a.sum.data() + group);
}

/// The vector `source` into row `token` of `target`, as the matrix that comes `next` takes it.
void Session::State::normalise(const float* source, const float* weight, WeightType next,
                               Activations& target, std::size_t token, unsigned worker) {
    const bool floats = next == WeightType::f32 || observer != nullptr;
    float* y = floats ? target.row(token) : normed.data() + worker * config.width;
    kernel.rmsnorm(source, weight, config.width, static_cast<float>(config.norm_eps), y);
    if (next != WeightType::f32) quantize(y, target, token * config.width, config.width);
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
    share(w.rows, kernels::row_block, w.bytes(), count,
          [&](std::size_t begin, std::size_t end, unsigned worker) {
              multiply(w, a, count, begin, end, {y, w.rows, add}, worker);
          });
}

/// Gate, up and what becomes of them, for rows [begin, end) of either; a few rows at a time for
/// many tokens, so that the numbers between are still in the cache when they are used.
void Session::State::gate_and_up(const Layer& layer, std::size_t count, std::size_t begin,
                                 std::size_t end, unsigned worker) {
    const std::size_t ffn = config.ffn, step = count == 1 ? end - begin : kernels::group;
    const bool quantise = layer.down.type != WeightType::f32;
    const bool floats = !quantise || observer != nullptr;
    float* gate = gate_up.data() + worker * gate_up_floats;
    float* up = gate + gate_up_floats / 2;
    for (std::size_t row = begin; row < end; row += step) {
        multiply(layer.gate_up.slice(row, step), hidden, count, 0, step, {gate, step, false},
                 worker);
        multiply(layer.gate_up.slice(ffn + row, step), hidden, count, 0, step, {up, step, false},
                 worker);
        if (floats || step != kernels::group) {
            for (std::size_t t = 0; t < count; ++t) {
                float* y = floats ? inner.row(t) + row : gate + t * step;
                kernel.swiglu(gate + t * step, up + t * step, step, y);
                if (quantise) quantize(y, inner, t * ffn + row, step);
            }
        } else {
            quantize_swiglu(gate, up, count, row);
        }
    }
}

/// The same for one group of many tokens: side by side, so that the quantiser has several groups at
/// a time.
void Session::State::quantize_swiglu(float* gate, const float* up, std::size_t count,
                                     std::size_t row) {
    constexpr std::size_t some = 16, group = kernels::group;
    std::int8_t q[some * group];
    float scale[some];
    std::int32_t sum[some];
    for (std::size_t first = 0; first < count; first += some) {
        const std::size_t tokens = std::min(some, count - first);
        float* y = gate + first * group;
        kernel.swiglu(y, up + first * group, tokens * group, y);
        kernel.quantize(y, tokens * group, q, scale, sum);
        for (std::size_t t = 0; t < tokens; ++t) {
            const std::size_t place = ((first + t) * config.ffn + row) / group;
            std::memcpy(inner.q.data() + place * group, q + t * group, group);
            inner.scale.data()[place] = scale[t];
            inner.sum.data()[place] = sum[t];
        }
    }
}

void Session::State::feed_forward(std::size_t i, std::size_t count) {
    const Layer& layer = model.layers()[i];
    const std::size_t ffn = config.ffn;
    share(ffn, kernels::group, layer.gate_up.bytes(), count,
          [&](std::size_t begin, std::size_t end, unsigned worker) {
              gate_and_up(layer, count, begin, end, worker);
          });
    lap(Phase::gate_up);
    see(Observer::Place::down_input, i, inner.x.data(), count, ffn);
    project(layer.down, inner, count, residual.data(), true);
    lap(Phase::down);
}

/// The tokens of one batch through all layers; leaves the residual stream of each in `residual`.
void Session::State::run_layers(std::span<const TokenId> tokens) {
    const std::size_t count = tokens.size();
    if (profile != nullptr) profile->start();
    embed(tokens);
    rope.extend(position + count);
    lap(Phase::other);
    for (std::size_t i = 0; i < config.layers; ++i) {
        const Layer& layer = model.layers()[i];
        see(Observer::Place::residual, i, residual.data(), count, config.width);
        each_token(count, [&](std::size_t t, unsigned worker) {
            normalise(residual.data() + t * config.width, layer.attention_norm, layer.qkv.type,
                      hidden, t, worker);
        });
        see(Observer::Place::attention_input, i, hidden.x.data(), count, config.width);
        project(layer.qkv, hidden, count, qkv.data(), false);
        if (observer != nullptr) {
            each_token(count, [&](std::size_t t, unsigned) { rotate(t); });
            see_keys_and_values(i, count);
        }
        ranges(count, [&](std::size_t begin, std::size_t end, unsigned) {
            for (std::size_t t = begin; t < end && observer == nullptr; ++t)
                rotate(t);
            remember(i, begin, end);
        });
        lap(Phase::qkv);
        attention(i, count);
        lap(Phase::attention);
        if (layer.output.type != WeightType::f32 && !heads_fill_groups()) {
            each_token(count, [&](std::size_t t, unsigned) {
                quantize(mixed.row(t), mixed, t * mixed.cols, mixed.cols);
            });
        }
        see(Observer::Place::output_input, i, mixed.x.data(), count, mixed.cols);
        project(layer.output, mixed, count, residual.data(), true);
        lap(Phase::output);
        each_token(count, [&](std::size_t t, unsigned worker) {
            normalise(residual.data() + t * config.width, layer.ffn_norm, layer.gate_up.type,
                      hidden, t, worker);
        });
        see(Observer::Place::ffn_input, i, hidden.x.data(), count, config.width);
        feed_forward(i, count);
    }
    see(Observer::Place::residual, config.layers, residual.data(), count, config.width);
    position += count;
}

/// Logits of tokens [first, first + count) of the batch, count <= logits_batch.
void Session::State::head(std::size_t first, std::size_t count) {
    if (profile != nullptr) profile->start();
    for (std::size_t t = 0; t < count; ++t) {
        normalise(residual.data() + (first + t) * config.width, model.final_norm(),
                  model.head().type, last, t, 0);
    }
    see(Observer::Place::head_input, config.layers, last.x.data(), count, config.width);
    project(model.head(), last, count, logits.data(), false);
    lap(Phase::head);
    see(Observer::Place::logits, config.layers, logits.data(), count, config.vocab);
}

Result<void> Session::State::check(std::span<const TokenId> tokens) const {
    const std::string& file = model.file().path();
    if (tokens.empty()) return Error{fmt::format("{}: no tokens to evaluate", file)};
    if (tokens.size() > config.context - position) {
        const std::string before = position > 0 ? fmt::format(" after {}", position) : "";
        return Error{fmt::format("{}: {} tokens{} exceed the context of {}", file, tokens.size(),
                                 before, config.context)};
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
                                Parallel& parallel, CacheType cache) {
    try {
        return Session(std::make_unique<State>(model, kernels, parallel, cache));
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

void Session::measure(Profile* profile) {
    state_->profile = profile;
}

std::size_t Session::cache_bytes() const {
    return state_->cache.bytes();
}

} // namespace mnm
