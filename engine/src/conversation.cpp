// SPDX-License-Identifier: MIT
// Turns to a prompt: what fits, in the form the model was trained on.
#include "engine/conversation.h"

#include <utility>

namespace mnm {
namespace {

/// The role's token and <|end|> around the content.
std::size_t cost(const Turn& turn) {
    return turn.ids.size() + 2;
}

TokenId role_token(const Tokenizer& tokenizer, Role role) {
    switch (role) {
    case Role::system:
        return tokenizer.system();
    case Role::user:
        return tokenizer.user();
    case Role::assistant:
        break;
    }
    return tokenizer.assistant();
}

std::string more_than(std::size_t found, std::size_t limit) {
    return std::to_string(found) + " > " + std::to_string(limit) + " tokens";
}

} // namespace

void Conversation::set_system(std::string_view text) {
    system_.reset();
    if (!text.empty()) system_ = Turn{Role::system, tokenizer_->encode(text)};
}

void Conversation::add(Role role, std::string_view text) {
    add(role, tokenizer_->encode(text));
}

void Conversation::add(Role role, std::vector<TokenId> ids) {
    if (role != Role::system)
        turns_.push_back(Turn{role, std::move(ids)});
    else if (ids.empty())
        system_.reset();
    else
        system_ = Turn{role, std::move(ids)};
}

void Conversation::reset() {
    turns_.clear();
}

Result<Conversation::Prompt> Conversation::prompt(std::size_t limit) {
    std::size_t total = 2; // <|bos|> and the last <|assistant|>
    if (system_) total += cost(*system_);
    std::size_t first = turns_.size();
    if (first > 0) total += cost(turns_[--first]);
    if (total > limit) {
        const std::size_t message = turns_.empty() ? 0 : turns_.back().ids.size();
        if (message > limit) {
            return Error{"the message is too long for the context: " + more_than(message, limit)};
        }
        return Error{"the message, its markers and the system turn are too long for the context: " +
                     more_than(total, limit)};
    }
    while (first > 0 && cost(turns_[first - 1]) <= limit - total)
        total += cost(turns_[--first]);

    Prompt prompt;
    prompt.dropped = first;
    turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(first));
    prompt.ids.reserve(total);
    prompt.ids.push_back(tokenizer_->bos());
    const auto append = [&](const Turn& turn) {
        prompt.ids.push_back(role_token(*tokenizer_, turn.role));
        prompt.ids.insert(prompt.ids.end(), turn.ids.begin(), turn.ids.end());
        prompt.ids.push_back(tokenizer_->end());
    };
    if (system_) append(*system_);
    for (const Turn& turn : turns_)
        append(turn);
    prompt.ids.push_back(tokenizer_->assistant());
    return prompt;
}

void Conversation::drop_last() {
    if (!turns_.empty()) turns_.pop_back();
}

std::string_view native_chat_template() {
    return "{% for message in messages %}"
           "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
           "{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";
}

} // namespace mnm
