// SPDX-License-Identifier: MIT
// A conversation as tokens: roles, turns, and what to drop when the context fills.
#pragma once

#include "engine/tokenizer.h"
#include "formats/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mnm {

enum class Role { system, user, assistant };

struct Turn {
    Role role;
    std::vector<TokenId> ids; ///< content only, without the role's token and <|end|>
};

/// <|bos|>, then per turn the role's token, the content, <|end|>. Borrows the tokenizer, which must
/// outlive it.
class Conversation {
  public:
    explicit Conversation(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

    /// Replaces the system turn; empty text removes it. It always stands first.
    void set_system(std::string_view text);
    void add(Role role, std::string_view text);
    void add(Role role, std::vector<TokenId> ids);
    /// Forgets everything but the system turn.
    void reset();
    const std::vector<Turn>& turns() const { return turns_; }

    struct Prompt {
        std::vector<TokenId> ids; ///< ends with <|assistant|>, ready for the reply
        std::size_t dropped =
            0; ///< turns left out, oldest first; never the system turn or the last
    };
    /// The prompt for the next reply, in at most `limit` tokens: the system turn and the newest
    /// turns that fit; what is left out is forgotten. Errors: the system turn and the last turn
    /// alone are too long; the message names both numbers, and the turns stay as they were.
    Result<Prompt> prompt(std::size_t limit);
    /// Takes the last turn back (after a refused prompt).
    void drop_last();

  private:
    const Tokenizer* tokenizer_;
    std::optional<Turn> system_;
    std::vector<Turn> turns_;
};

/// The Jinja text that format 2 and GGUF carry for this conversation form (without <|bos|>, which
/// the tokenizer adds).
std::string_view native_chat_template();

/// Splits a stream of token bytes into whole UTF-8 characters. Bytes that can never become one come
/// out as U+FFFD, at the latest when three more have arrived.
class Utf8Stream {
  public:
    /// What is complete after these bytes.
    std::string push(std::string_view bytes);
    /// What is left at the end: nothing, or one U+FFFD.
    std::string finish();

  private:
    std::string pending_;
};

} // namespace mnm
