// SPDX-License-Identifier: MIT
// `.tok`: tokens for training and evaluation, plain or chat with masked targets.
#pragma once

#include "formats/mapped_file.h"
#include "formats/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mnm {

/// Owns its mapping; `tokens` points into it. Row r of a model with context T is the T + 1 tokens
/// from r T: T inputs, each predicting the next, from an empty cache.
struct TokenStream {
    /// In chat files: this token counts in the loss.
    static constexpr std::uint16_t target_bit = 0x8000;

    std::shared_ptr<const MappedFile> mapping;
    std::uint64_t documents = 0;
    std::uint64_t vocab = 0;
    std::uint64_t tokenizer_hash = 0;
    bool chat = false;
    std::uint64_t block = 0;               ///< tokens of one packed row, 0 for a plain stream
    std::span<const std::uint16_t> tokens; ///< chat: with target_bit

    static bool probe(std::span<const std::byte> file);
    /// Errors: wrong magic, flags unknown, another number of tokens announced than the file holds,
    /// an id >= vocab.
    static Result<TokenStream> open(const std::string& path);
};

} // namespace mnm
