// SPDX-License-Identifier: MIT
// Byte-pair merging: in place for words, with a queue for long chunks.
#include "engine/src/merger.h"

#include <algorithm>
#include <functional>

namespace mnm {
namespace {

/// A queue entry holds the merge's number above the position: comparing entries compares both.
constexpr unsigned position_bits = 40;
constexpr std::size_t max_merges = std::size_t{1} << (64 - position_bits);
constexpr std::uint64_t position_mask = (std::uint64_t{1} << position_bits) - 1;

} // namespace

Merger::Merger(const TokenizerFile& file) {
    const std::size_t count = std::min(file.merges.size(), max_merges);
    std::uint32_t bits = 4;
    while ((std::size_t{1} << bits) < count * 4)
        ++bits;
    shift_ = 32 - bits;
    slots_.assign(std::size_t{1} << bits, Slot{0, none});
    for (std::size_t i = 0; i < count; ++i) {
        const auto [left, right] = file.merges[i];
        if (left >= 256 + i || right >= 256 + i) continue;
        const std::uint32_t pair = std::uint32_t{left} << 16 | right;
        std::size_t at = home(pair);
        while (slots_[at].number != none && slots_[at].pair != pair)
            at = (at + 1) & (slots_.size() - 1);
        if (slots_[at].number == none) slots_[at] = {pair, static_cast<std::uint32_t>(i)};
    }
}

std::uint32_t Merger::find(TokenId left, TokenId right) const {
    if ((left | right) > 0xFFFF) return none; // no merge can name such a token
    const std::uint32_t pair = left << 16 | right;
    for (std::size_t at = home(pair);; at = (at + 1) & (slots_.size() - 1)) {
        const Slot& slot = slots_[at];
        if (slot.pair == pair || slot.number == none) return slot.number;
    }
}

std::size_t Merger::merge_short(std::string_view chunk, TokenId* ids) const {
    std::size_t n = chunk.size();
    std::uint32_t numbers[short_chunk]; // of the merge of each token with the next one
    for (std::size_t i = 0; i < n; ++i)
        ids[i] = static_cast<unsigned char>(chunk[i]);
    for (std::size_t i = 0; i + 1 < n; ++i)
        numbers[i] = find(ids[i], ids[i + 1]);
    numbers[n - 1] = none;
    while (n > 1) {
        std::size_t best = 0;
        for (std::size_t i = 1; i + 1 < n; ++i) {
            if (numbers[i] < numbers[best]) best = i;
        }
        if (numbers[best] == none) break;
        ids[best] = 256 + numbers[best];
        --n;
        for (std::size_t i = best + 1; i < n; ++i) {
            ids[i] = ids[i + 1];
            numbers[i] = numbers[i + 1];
        }
        numbers[best] = best + 1 < n ? find(ids[best], ids[best + 1]) : none;
        if (best > 0) numbers[best - 1] = find(ids[best - 1], ids[best]);
    }
    return n;
}

void Merger::merge_long(std::string_view chunk, std::vector<TokenId>& ids) const {
    constexpr TokenId merged_away = UINT32_MAX;
    const std::size_t n = chunk.size();
    std::vector<TokenId> tokens(n); // a token stands where its first byte stood
    std::vector<std::size_t> next(n);
    std::vector<std::size_t> previous(n); // of the first: n
    std::vector<std::uint64_t> queue;
    const auto entry = [](std::uint32_t number, std::size_t position) {
        return std::uint64_t{number} << position_bits | position;
    };
    for (std::size_t i = 0; i < n; ++i) {
        tokens[i] = static_cast<unsigned char>(chunk[i]);
        next[i] = i + 1;
        previous[i] = i > 0 ? i - 1 : n;
    }
    for (std::size_t i = 0; i + 1 < n; ++i) {
        const std::uint32_t number = find(tokens[i], tokens[i + 1]);
        if (number != none) queue.push_back(entry(number, i));
    }
    std::make_heap(queue.begin(), queue.end(), std::greater<>());
    const auto offer = [&](std::size_t left, std::size_t right) {
        if (left == n || right == n) return;
        const std::uint32_t number = find(tokens[left], tokens[right]);
        if (number == none) return;
        queue.push_back(entry(number, left));
        std::push_heap(queue.begin(), queue.end(), std::greater<>());
    };
    while (!queue.empty()) {
        std::pop_heap(queue.begin(), queue.end(), std::greater<>());
        const std::size_t left = static_cast<std::size_t>(queue.back() & position_mask);
        const auto number = static_cast<std::uint32_t>(queue.back() >> position_bits);
        queue.pop_back();
        const std::size_t right = next[left];
        // The pair may be gone since it was queued.
        if (tokens[left] == merged_away || right == n) continue;
        if (find(tokens[left], tokens[right]) != number) continue;
        tokens[left] = 256 + number;
        tokens[right] = merged_away;
        next[left] = next[right];
        if (next[left] != n) previous[next[left]] = left;
        offer(previous[left], left);
        offer(left, next[left]);
    }
    for (std::size_t i = 0; i != n; i = next[i])
        ids.push_back(tokens[i]);
}

} // namespace mnm
