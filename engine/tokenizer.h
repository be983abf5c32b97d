// SPDX-License-Identifier: MIT
// Byte-level BPE: text to token ids and back.
#pragma once

#include "formats/tokenizer_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mnm {

using TokenId = std::uint32_t;

/// Const after construction; any number of threads may encode at once.
class Tokenizer {
  public:
    explicit Tokenizer(TokenizerFile file);
    ~Tokenizer();
    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;

    /// Any bytes; never yields a special token, whatever the text spells. Linear in the length of
    /// the text (n log n inside one chunk). decode(encode(x)) == x.
    std::vector<TokenId> encode(std::string_view text) const;
    /// The same, appended to `ids`.
    void encode(std::string_view text, std::vector<TokenId>& ids) const;

    /// The chunk at the front of `text` (not empty): what the pre-tokenizer would split off.
    static std::string_view next_chunk(std::string_view text);

    /// The bytes of a token; for a special its name, as "<|end|>"; empty for an unused id.
    std::string_view bytes(TokenId id) const;
    std::string decode(std::span<const TokenId> ids) const;

    std::uint32_t vocab() const { return file_.vocab; }
    std::uint64_t hash() const { return file_.hash; }
    const TokenizerFile& file() const { return file_; }
    bool is_special(TokenId id) const;
    TokenId bos() const { return file_.first_special; }
    TokenId user() const { return file_.first_special + 1; }
    TokenId assistant() const { return file_.first_special + 2; }
    TokenId system() const { return file_.first_special + 3; }
    TokenId end() const { return file_.first_special + 4; }

  private:
    struct Tables;
    TokenizerFile file_;
    std::unique_ptr<Tables> tables_;
};

} // namespace mnm
