// SPDX-License-Identifier: MIT
// Reading and checking tokenizer.bin.
#include "formats/tokenizer_file.h"

#include "formats/src/bytes.h"

#include <fmt/format.h>

#include <algorithm>
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

/// A token's spelling without its bytes: its length and a polynomial hash of it modulo 2^64. The
/// spelling of a merge follows from its halves, so no token has to be written out.
struct Spelling {
    std::uint64_t hash = 0;
    std::uint64_t shift = 1; ///< base to the power of the length
    std::uint32_t length = 0;
};

Spelling joined(const Spelling& a, const Spelling& b) {
    return {a.hash * b.shift + b.hash, a.shift * b.shift, a.length + b.length};
}

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

Result<void> check_spellings(const TokenizerFile& file, std::string_view name) {
    constexpr std::uint64_t base = 0x9e3779b97f4a7c15u;
    std::uint64_t total = 0;
    std::vector<Spelling> spellings(bytes_in_vocab + file.merges.size());
    for (std::uint32_t id = 0; id < bytes_in_vocab; ++id)
        spellings[id] = {id + 1, base, 1};
    for (std::uint32_t id = bytes_in_vocab; id < spellings.size(); ++id) {
        const auto [left, right] = file.merges[id - bytes_in_vocab];
        if (left >= id || right >= id)
            return Error{fmt::format("{}: merge {} joins tokens {} and {}, expected ids below {}",
                                     name, id - bytes_in_vocab, left, right, id)};
        spellings[id] = joined(spellings[left], spellings[right]);
        if (spellings[id].length > max_length)
            return Error{fmt::format("{}: token {} is {} bytes long, expected at most {}", name, id,
                                     spellings[id].length, max_length)};
        total += spellings[id].length;
    }
    const std::uint64_t most = mean_length * file.merges.size() + spare_length;
    if (total > most)
        return Error{fmt::format("{}: the tokens are {} bytes long together, expected at most {}",
                                 name, total, most)};
    std::vector<std::uint32_t> order(spellings.size());
    for (std::uint32_t id = 0; id < order.size(); ++id)
        order[id] = id;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(spellings[a].hash, a) < std::pair(spellings[b].hash, b);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const std::uint32_t a = order[i - 1], b = order[i];
        if (spellings[a].hash == spellings[b].hash && spellings[a].length == spellings[b].length &&
            spelt(file, a) == spelt(file, b))
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
