// SPDX-License-Identifier: MIT
// Reading and checking tokenizer.bin.
#include "formats/tokenizer_file.h"

#include "formats/src/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace mnm {

namespace {

constexpr std::string_view tokenizer_magic = "MNTOKZR1";
constexpr std::size_t tokenizer_header_size = 32;
constexpr std::uint32_t bytes_in_vocab = 256;
constexpr std::uint32_t max_ids = 65536;   ///< merges and token streams hold 16-bit ids
constexpr std::uint32_t max_length = 1024; ///< bytes of one token
/// Bytes of all tokens, per merge and beyond: a small file must not unfold to a large table.
/// Trained vocabularies have 6 to 8 bytes a token.
constexpr std::uint64_t mean_length = 64, spare_length = 65536;
constexpr std::uint32_t named_specials = 5;

void spell(const TokenizerFile& file, std::uint32_t id, std::string& out) {
    if (id < bytes_in_vocab) {
        out.push_back(static_cast<char>(id));
        return;
    }
    const auto [left, right] = file.merges[id - bytes_in_vocab];
    spell(file, left, out);
    spell(file, right, out);
}

std::string spelt(const TokenizerFile& file, std::uint32_t id) {
    std::string out;
    spell(file, id, out);
    return out;
}

/// The ids in the order of their hashes. Buckets of the first bits hold a few each, so that little
/// is left to sort, and a file that fills one bucket only makes it an ordinary sort.
std::vector<std::uint16_t> by_hash(const std::vector<std::uint64_t>& hash) {
    static_assert(max_ids - 1 <= UINT16_MAX);
    constexpr unsigned bits = 13;
    const auto bucket = [&](std::size_t id) { return hash[id] >> (64 - bits); };
    std::vector<std::uint32_t> ends((std::size_t{1} << bits) + 1); // of the bucket before
    for (std::size_t id = 0; id < hash.size(); ++id)
        ++ends[bucket(id) + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<std::uint16_t> order(hash.size());
    for (std::size_t id = 0; id < order.size(); ++id)
        order[ends[bucket(id)]++] = static_cast<std::uint16_t>(id); // now of the bucket itself
    std::uint32_t begin = 0;
    for (std::size_t i = 0; i < ends.size() - 1; begin = ends[i++]) {
        std::sort(order.begin() + begin, order.begin() + ends[i],
                  [&](std::uint16_t a, std::uint16_t b) {
                      return std::pair(hash[a], a) < std::pair(hash[b], b);
                  });
    }
    return order;
}

Result<void> check_spellings(const TokenizerFile& file, std::string_view name) {
    constexpr std::uint64_t base = 0x9e3779b97f4a7c15u;
    std::vector<std::uint64_t> power(max_length + 1, 1);
    for (std::size_t i = 1; i < power.size(); ++i)
        power[i] = power[i - 1] * base;
    std::uint64_t total = 0;
    // A spelling's polynomial hash modulo 2^64 and its length follow from those of its halves, so
    // no token has to be written out. Narrow numbers: a page of memory costs as much as many
    // tokens.
    std::vector<std::uint64_t> hash(bytes_in_vocab + file.merges.size());
    std::vector<std::uint16_t> length(hash.size());
    for (std::uint32_t id = 0; id < bytes_in_vocab; ++id) {
        hash[id] = id + 1;
        length[id] = 1;
    }
    for (std::uint32_t id = bytes_in_vocab; id < hash.size(); ++id) {
        const auto [left, right] = file.merges[id - bytes_in_vocab];
        if (left >= id || right >= id)
            return Error{fmt::format("{}: merge {} joins tokens {} and {}, expected ids below {}",
                                     name, id - bytes_in_vocab, left, right, id)};
        const std::uint32_t bytes = std::uint32_t{length[left]} + length[right];
        if (bytes > max_length)
            return Error{fmt::format("{}: token {} is {} bytes long, expected at most {}", name, id,
                                     bytes, max_length)};
        hash[id] = hash[left] * power[length[right]] + hash[right];
        length[id] = static_cast<std::uint16_t>(bytes);
        total += bytes;
    }
    const std::uint64_t most = mean_length * file.merges.size() + spare_length;
    if (total > most)
        return Error{fmt::format("{}: the tokens are {} bytes long together, expected at most {}",
                                 name, total, most)};
    const std::vector<std::uint16_t> order = by_hash(hash);
    for (std::size_t i = 1; i < order.size(); ++i) {
        const std::uint16_t a = order[i - 1], b = order[i];
        if (hash[a] == hash[b] && length[a] == length[b] && spelt(file, a) == spelt(file, b))
            return Error{fmt::format("{}: tokens {} and {} are spelt alike", name, a, b)};
    }
    return {};
}

} // namespace

Result<TokenizerFile> parse_tokenizer(std::span<const std::byte> bytes, std::string_view file) {
    if (!starts_with(bytes, tokenizer_magic))
        return Error{
            fmt::format("{}: not a tokenizer: it does not begin with {}", file, tokenizer_magic)};
    if (bytes.size() < tokenizer_header_size)
        return Error{fmt::format("{}: the file has {} bytes, expected at least {} for the header "
                                 "of a tokenizer",
                                 file, bytes.size(), tokenizer_header_size)};
    TokenizerFile out;
    out.vocab = load<std::uint32_t>(bytes, 8);
    const std::uint32_t merges = load<std::uint32_t>(bytes, 12);
    out.first_special = load<std::uint32_t>(bytes, 16);
    out.specials = load<std::uint32_t>(bytes, 20);
    out.hash = load<std::uint64_t>(bytes, 24);

    if (out.vocab > max_ids)
        return Error{fmt::format("{}: vocab is {}, expected at most {}", file, out.vocab, max_ids)};
    if (out.specials < named_specials)
        return Error{fmt::format("{}: the number of special tokens is {}, expected at least {}",
                                 file, out.specials, named_specials)};
    if (std::uint64_t{out.first_special} + out.specials != out.vocab)
        return Error{fmt::format("{}: special tokens are {} from id {} on, expected them to end at "
                                 "vocab, {}",
                                 file, out.specials, out.first_special, out.vocab)};
    if (std::uint64_t{bytes_in_vocab} + merges > out.first_special)
        return Error{fmt::format("{}: {} merges do not fit below the first special id, {}", file,
                                 merges, out.first_special)};
    const std::uint64_t size = tokenizer_header_size + std::uint64_t{4} * merges;
    if (bytes.size() != size)
        return Error{fmt::format("{}: the tokenizer has {} bytes, expected {} for {} merges", file,
                                 bytes.size(), size, merges)};
    out.merges.reserve(merges);
    for (std::uint32_t i = 0; i < merges; ++i) {
        const std::uint32_t pair =
            load<std::uint32_t>(bytes, tokenizer_header_size + std::uint64_t{4} * i);
        out.merges.emplace_back(static_cast<std::uint16_t>(pair & 0xffff),
                                static_cast<std::uint16_t>(pair >> 16));
    }
    MNM_CHECK(check_spellings(out, file));
    return out;
}

} // namespace mnm
