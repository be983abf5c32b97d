// SPDX-License-Identifier: MIT
// The ids of chunks met before: text repeats its words.
#pragma once

#include "engine/src/zeroed.h"
#include "engine/tokenizer.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mnm {

/// A table of fixed size; a new chunk takes the place of the one it collides with. Not for two
/// threads at once.
class ChunkCache {
  public:
    static constexpr std::size_t max_chunk = 15;
    static constexpr std::size_t max_ids = 11;

    /// The bytes of the chunk, zeros, and in the last byte its length.
    struct Key {
        std::uint64_t low, high;
        bool operator==(const Key&) const = default;
    };
    /// One cache line. A free entry has length 0, which no chunk has.
    struct alignas(64) Entry {
        Key key;
        std::uint32_t count;
        TokenId ids[max_ids];
    };

    ChunkCache() : entries_(std::size_t{1} << bits) {}

    /// The key of the first `length` (at most max_chunk) bytes of `text`.
    static Key key(std::string_view text, std::size_t length) {
        std::uint64_t half[2] = {0, 0};
        if (std::endian::native == std::endian::little && text.size() >= 16) {
            std::memcpy(half, text.data(), 16); // of known size: two loads
            const std::uint64_t keep = ~std::uint64_t{0} >> ((64 - 8 * length) & 63);
            if (length < 8) half[0] &= keep;
            half[1] &= length > 8 ? keep : 0;
            half[1] |= std::uint64_t{length} << 56;
        } else {
            unsigned char bytes[16] = {};
            std::memcpy(bytes, text.data(), length);
            bytes[15] = static_cast<unsigned char>(length);
            std::memcpy(half, bytes, 16);
        }
        return {half[0], half[1]};
    }
    /// Where the key is, or would be.
    Entry& at(const Key& key) {
        const std::uint64_t mixed = (key.low ^ std::rotl(key.high, 29)) * 0x9E3779B97F4A7C15U;
        return entries_[static_cast<std::size_t>(mixed >> (64 - bits))];
    }

  private:
    static constexpr unsigned bits = 14; ///< 1 MiB: stays in a second-level cache
    Zeroed<Entry> entries_;
};

} // namespace mnm
