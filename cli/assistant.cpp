// SPDX-License-Identifier: MIT
// One side of a chat: the model that answers.
#include "cli/assistant.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace mnm::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// True when the end is one span, of up to 64 tokens, at least eight times in a row and for at
/// least 48 tokens: small models fall into this and never leave it.
bool repeats_itself(const std::vector<TokenId>& ids) {
    constexpr std::size_t times = 8, least = 48, longest = 64;
    for (std::size_t span = 1; span <= longest && span * times <= ids.size(); ++span) {
        const std::size_t length = std::max(span * times, least);
        if (length > ids.size()) continue;
        const auto begin = ids.end() - static_cast<std::ptrdiff_t>(length);
        if (std::equal(begin + static_cast<std::ptrdiff_t>(span), ids.end(), begin)) return true;
    }
    return false;
}

} // namespace

double Reply::tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(ids.size()) / seconds : 0;
}

std::string_view describe(Reply::End end) {
    switch (end) {
    case Reply::End::finished:
        return "";
    case Reply::End::token_limit:
        return "stopped at the limit of --max-tokens";
    case Reply::End::context_full:
        return "stopped: the context is full";
    case Reply::End::interrupted:
        return "interrupted";
    case Reply::End::repetition:
        return "stopped: repetition";
    }
    return "";
}

Assistant::Assistant(const Model& model, const Tokenizer& tokenizer, Session session,
                     Sampler sampler, std::size_t max_tokens)
    : model_(&model), tokenizer_(&tokenizer), conversation_(tokenizer),
      session_(std::move(session)), sampler_(std::move(sampler)), max_tokens_(max_tokens) {}

Result<Assistant> Assistant::create(const Model& model, const Tokenizer& tokenizer,
                                    const kernels::Kernels& kernels, Parallel& parallel,
                                    CacheType cache, const SamplerOptions& sampling,
                                    std::size_t max_tokens) {
    MNM_TRY(Session session, Session::create(model, kernels, parallel, cache));
    return Assistant(model, tokenizer, std::move(session), Sampler(sampling, kernels), max_tokens);
}

Result<void> Assistant::set_system(std::string_view text) {
    // <|bos|>, two markers each for the system text and a message of one token, the reply's marker.
    constexpr std::size_t others = 1 + 2 + 2 + 1 + 1;
    const std::size_t size = tokenizer_->encode(text).size();
    if (size != 0 && size + others > context()) {
        const std::size_t most = context() > others ? context() - others : 0;
        return Error{fmt::format("the system text has {} tokens; beside a message the context of "
                                 "{} has room for {}",
                                 size, context(), most)};
    }
    conversation_.set_system(text);
    return {};
}

void Assistant::reset() {
    conversation_.reset();
    session_.rewind(0);
    cached_.clear();
}

/// Leaves a quarter of the context for the reply where that is possible.
Result<Conversation::Prompt> Assistant::fitting_prompt() {
    const std::size_t reserve = std::min(max_tokens_, context() / 4);
    if (auto prompt = conversation_.prompt(context() - reserve)) return prompt;
    return conversation_.prompt(context());
}

/// Feeds what of the prompt is not in the cache; in pieces, so that an interrupt is soon noticed.
Result<std::span<const float>> Assistant::feed(std::span<const TokenId> prompt,
                                               const InterruptFlag* interrupt, Reply& reply) {
    constexpr std::size_t piece = 512;
    const auto [end, _] =
        std::mismatch(prompt.begin(), prompt.end(), cached_.begin(), cached_.end());
    // The last token is fed again in any case: its logits are wanted.
    std::size_t done = std::min(static_cast<std::size_t>(end - prompt.begin()), prompt.size() - 1);
    reply.reused_tokens = done;
    session_.rewind(done);
    cached_.resize(done);
    std::span<const float> logits;
    while (done < prompt.size()) {
        if (interrupt != nullptr && interrupt->raised()) return std::span<const float>{};
        const auto part = prompt.subspan(done, std::min(piece, prompt.size() - done));
        MNM_TRY(logits, session_.forward(part));
        cached_.insert(cached_.end(), part.begin(), part.end());
        done += part.size();
    }
    return logits;
}

Result<Reply> Assistant::answer(std::string_view text,
                                const std::function<void(std::string_view)>& show,
                                const InterruptFlag* interrupt) {
    conversation_.add(Role::user, text);
    auto prompt = fitting_prompt();
    if (!prompt) {
        conversation_.drop_last();
        return prompt.error();
    }

    Reply reply;
    reply.prompt_tokens = prompt->ids.size();
    reply.dropped_turns = prompt->dropped;
    auto start = Clock::now();
    MNM_TRY(std::span<const float> logits, feed(prompt->ids, interrupt, reply));
    reply.prompt_seconds = seconds_since(start);

    Utf8Stream stream;
    const auto say = [&](const std::string& piece) {
        if (piece.empty()) return;
        reply.text += piece;
        show(piece);
    };
    start = Clock::now();
    while (true) {
        if (interrupt != nullptr && interrupt->raised()) {
            reply.end = Reply::End::interrupted;
            break;
        }
        if (reply.ids.size() == max_tokens_) {
            reply.end = Reply::End::token_limit;
            break;
        }
        const TokenId id = sampler_.sample(logits);
        if (tokenizer_->is_special(id)) break;
        reply.ids.push_back(id);
        say(stream.push(tokenizer_->bytes(id)));
        if (repeats_itself(reply.ids)) {
            reply.end = Reply::End::repetition;
            break;
        }
        if (session_.position() == context()) {
            reply.end = Reply::End::context_full;
            break;
        }
        MNM_TRY(logits, session_.forward(std::span(&id, 1)));
        cached_.push_back(id);
    }
    say(stream.finish());
    reply.seconds = seconds_since(start);
    conversation_.add(Role::assistant, reply.ids);
    return reply;
}

} // namespace mnm::cli
