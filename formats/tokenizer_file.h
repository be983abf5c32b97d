// SPDX-License-Identifier: MIT
// tokenizer.bin: the merges of a byte-level BPE and where its special tokens start.
#pragma once

#include "formats/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mnm {

/// Tokens 0..255 are the bytes, merge i makes token 256 + i, ids from 256 + merges.size() up to
/// first_special are empty, specials follow.
struct TokenizerFile {
    std::uint32_t vocab = 0;
    std::uint32_t first_special = 0;
    std::uint32_t specials = 0;
    std::uint64_t hash = 0;
    std::vector<std::pair<std::uint16_t, std::uint16_t>> merges;
};

/// `file` names the source in messages. Errors: wrong magic, counts that do not fit the bytes or
/// each other, a merge that refers to a token not made before it, a token spelt twice or of absurd
/// length.
Result<TokenizerFile> parse_tokenizer(std::span<const std::byte> bytes, std::string_view file);

} // namespace mnm
