// SPDX-License-Identifier: MIT
// A running text: the key/value cache, the position in it, and the forward pass.
#pragma once

#include "engine/model.h"
#include "engine/observer.h"
#include "engine/parallel.h"
#include "engine/profile.h"
#include "engine/tokenizer.h"
#include "formats/result.h"
#include "kernels/kernels.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace mnm {

/// How the cache keeps keys and values: f32, or f16 and q8, which read less for a small loss.
using CacheType = kernels::CacheType;

/// Borrows model, kernels and threads, which must outlive it. One thread at a time.
///
///     MNM_TRY(Session session, Session::create(model, kernels::best(), parallel));
///     MNM_TRY(auto logits, session.forward(prompt));      // logits of the last token, [V]
class Session {
  public:
    /// The cache has room for the model's whole context; its pages are taken as the text grows.
    /// Errors: not enough memory for it.
    static Result<Session> create(const Model& model, const kernels::Kernels& kernels,
                                  Parallel& parallel, CacheType cache = CacheType::f32);
    ~Session();
    Session(Session&&) noexcept;

    /// Appends the tokens and returns the logits [V] after the last one, valid until the next call.
    /// The bits do not depend on how a text is cut into calls, nor on threads or level. Errors: no
    /// tokens, a token id >= V, more tokens than the context has room for, logits that are not
    /// finite (the weights are damaged, or overflow float).
    Result<std::span<const float>> forward(std::span<const TokenId> tokens);

    /// The same, with the logits after every token: row(i, logits) for token i of this call, in
    /// order.
    Result<void> forward_all(std::span<const TokenId> tokens,
                             const std::function<void(std::size_t, std::span<const float>)>& row);

    /// Tokens in the cache.
    std::size_t position() const;
    /// Forgets all tokens from `position` on, so that a common beginning is not computed again.
    void rewind(std::size_t position);
    /// From the next call on, `observer` (borrowed; null: nobody) sees what flows through the
    /// passes.
    void observe(Observer* observer);
    /// From the next call on, passes add their times to `profile` (borrowed; null: to none).
    void measure(Profile* profile);
    /// Bytes of the cache at full context.
    std::size_t cache_bytes() const;

  private:
    struct State;
    explicit Session(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace mnm
