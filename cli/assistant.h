// SPDX-License-Identifier: MIT
// One side of a chat: the model that answers, its conversation and its cache.
#pragma once

#include "cli/interrupt.h"
#include "engine/conversation.h"
#include "engine/model.h"
#include "engine/parallel.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "engine/tokenizer.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mnm::cli {

/// A reply and what became of it.
struct Reply {
    enum class End { finished, token_limit, context_full, interrupted, repetition };

    std::vector<TokenId> ids; ///< without the token that ended it
    std::string text;         ///< valid UTF-8
    End end = End::finished;
    std::size_t prompt_tokens = 0;
    std::size_t reused_tokens = 0; ///< of the prompt, still in the cache from the turn before
    std::size_t dropped_turns = 0; ///< forgotten because the context was full
    double prompt_seconds = 0;
    double seconds = 0; ///< of the reply alone

    double tokens_per_second() const;
};

/// Why it ended, as a remark for people; empty for a reply that finished by itself.
std::string_view describe(Reply::End end);

/// Borrows all but the conversation; one thread.
class Assistant {
  public:
    static Result<Assistant> create(const Model& model, const Tokenizer& tokenizer,
                                    const kernels::Kernels& kernels, Parallel& parallel,
                                    CacheType cache, const SamplerOptions& sampling,
                                    std::size_t max_tokens);

    const Conversation& conversation() const { return conversation_; }
    /// Replaces the system text; an empty one removes it. Errors: no message would fit into the
    /// context beside it; what was set before stays.
    Result<void> set_system(std::string_view text);
    /// Forgets every turn, and what the cache holds of them.
    void reset();
    SamplerOptions& sampling() { return sampler_.options(); }
    const Session& session() const { return session_; }
    std::size_t context() const { return static_cast<std::size_t>(model_->config().context); }
    std::size_t max_tokens() const { return max_tokens_; }

    /// Answers `text` and keeps both turns; `show` gets the reply in whole characters as it grows.
    /// A reply that `interrupt` (may be null) stopped is kept as far as it came. Errors: the text
    /// does not fit into the context; the conversation stays as it was.
    Result<Reply> answer(std::string_view text, const std::function<void(std::string_view)>& show,
                         const InterruptFlag* interrupt);

  private:
    Assistant(const Model& model, const Tokenizer& tokenizer, Session session, Sampler sampler,
              std::size_t max_tokens);
    Result<Conversation::Prompt> fitting_prompt();
    Result<std::span<const float>> feed(std::span<const TokenId> prompt,
                                        const InterruptFlag* interrupt, Reply& reply);

    const Model* model_;
    const Tokenizer* tokenizer_;
    Conversation conversation_;
    Session session_;
    Sampler sampler_;
    std::size_t max_tokens_;
    std::vector<TokenId> cached_; ///< what the session's cache holds
};

} // namespace mnm::cli
