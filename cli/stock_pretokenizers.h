// SPDX-License-Identifier: MIT
// The pre-tokenizers that llama.cpp knows, and where they split a text differently from ours.
#pragma once

#include "formats/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mnm::cli {

/// Names for `tokenizer.ggml.pre`, the default first.
std::vector<std::string> stock_pretokenizers();

/// Places where the pieces differ, sorted by what stands there.
struct SplitDifference {
    std::uint64_t pieces = 0;      ///< of the text, as our tokenizer splits it
    std::uint64_t numbers = 0;     ///< places that are one run of digits
    std::uint64_t line_breaks = 0; ///< places of white space with a line break
    std::uint64_t others = 0;
    std::string first; ///< the text of the first place

    std::uint64_t places() const { return numbers + line_breaks + others; }
};

/// Compares on `text`; invalid UTF-8 in it is read as U+FFFD on both sides.
/// Errors: no pre-tokenizer of that name, the pattern library gave up.
Result<SplitDifference> compare_split(const std::string& pretokenizer, std::string_view text);

/// A short text with the kinds of things that pre-tokenizers disagree about.
std::string_view sample_text();

} // namespace mnm::cli
