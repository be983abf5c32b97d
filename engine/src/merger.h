// SPDX-License-Identifier: MIT
// The merge rule: the bytes of one chunk to token ids.
#pragma once

#include "engine/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mnm {

/// Applies the lowest-numbered merge present, everywhere, left to right, until none is. Const after
/// construction.
///
/// A merge makes a token that only higher-numbered merges can use. So the next pair to merge is
/// always the leftmost one of the lowest number, and a queue of (number, position) finds it.
class Merger {
  public:
    /// Ignores merges that refer to tokens not made before them, and equal ones but the first.
    explicit Merger(const TokenizerFile& file);

    /// Chunks up to this length are merged in place, where scanning all pairs beats a queue.
    static constexpr std::size_t short_chunk = 32;
    /// Writes the ids of a chunk of 1..short_chunk bytes to `ids` (room for as many); their number.
    std::size_t merge_short(std::string_view chunk, TokenId* ids) const;
    /// The same for any length, appended; n log n.
    void merge_long(std::string_view chunk, std::vector<TokenId>& ids) const;

  private:
    struct Slot {
        std::uint32_t pair;
        std::uint32_t number; ///< of the merge; `none` in a free slot
    };
    static constexpr std::uint32_t none = UINT32_MAX;
    std::size_t home(std::uint32_t pair) const { return (pair * 0x9E3779B1U) >> shift_; }
    std::uint32_t find(TokenId left, TokenId right) const;

    std::vector<Slot> slots_;
    std::uint32_t shift_ = 0;
};

} // namespace mnm
