// SPDX-License-Identifier: MIT
// Damaged tokenizers and token streams, and texts that are none.
#include "tests/engine/models.h"
#include "tests/hostile/trial.h"

#include "engine/evaluate.h"
#include "engine/tokenizer.h"
#include "formats/token_stream.h"
#include "formats/tokenizer_file.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>

using namespace mnm;
using namespace mnm::tests;
using Must = Trial::Must;

BOOST_AUTO_TEST_SUITE(tokens_test)

namespace {

Must any(std::size_t, const std::vector<std::byte>&) {
    return Must::either;
}

std::string random_bytes(std::size_t size, std::uint64_t seed) {
    Random random(seed);
    std::string text(size, '\0');
    for (char& c : text)
        c = static_cast<char>(random.next());
    return text;
}

/// Every text comes back as it was, in ids below the vocabulary and none of a special token.
void check_round_trip(const Tokenizer& tokenizer, std::string_view text) {
    const auto ids = tokenizer.encode(text);
    BOOST_REQUIRE(std::all_of(ids.begin(), ids.end(), [&](TokenId id) {
        return id < tokenizer.vocab() && !tokenizer.is_special(id);
    }));
    BOOST_REQUIRE(tokenizer.decode(ids) == text);
}

std::optional<std::string> read_tokenizer(const std::string& path) {
    const auto mapping = MappedFile::open(path);
    if (!mapping) return mapping.error().message;
    auto file = parse_tokenizer((*mapping)->bytes(), path);
    if (!file) return file.error().message;
    const Tokenizer tokenizer(std::move(*file));
    return std::nullopt;
}

void use_tokenizer(const std::string& path) {
    const Tokenizer tokenizer(must(parse_tokenizer(must(MappedFile::open(path))->bytes(), path)));
    static const std::string odd = random_bytes(600, 1);
    check_round_trip(tokenizer, "hello and then the hell of 1234 shells, \xc3\xa9\xe6\xbc\xa2\xff");
    check_round_trip(tokenizer, odd);
}

std::vector<std::byte> token_stream(bool chat, std::uint64_t block) {
    std::vector<std::uint16_t> tokens;
    for (std::uint16_t i = 0; i < 40; ++i)
        tokens.push_back(static_cast<std::uint16_t>((i * 37 % 300) | (chat && i % 3 ? 0x8000 : 0)));
    std::vector<std::byte> out(64 + 2 * tokens.size());
    const std::uint64_t fields[] = {tokens.size(), 1, 300, 7, chat ? 1u : 0u, block};
    std::memcpy(out.data(), "MNTOKEN1", 8);
    std::memcpy(out.data() + 8, fields, sizeof fields);
    std::memcpy(out.data() + 64, tokens.data(), 2 * tokens.size());
    return out;
}

ModelConfig stream_config() {
    ModelConfig config = small_config();
    config.vocab = 300;
    config.context = 16;
    return config;
}

Result<std::vector<EvaluationRow>> rows_of(const std::string& path) {
    MNM_TRY(const TokenStream stream, TokenStream::open(path));
    return evaluation_rows(stream, stream_config(), 7, std::nullopt);
}

std::optional<std::string> read_stream(const std::string& path) {
    const auto rows = rows_of(path);
    return rows ? std::nullopt : std::optional(rows.error().message);
}

void use_stream(const std::string& path) {
    for (const EvaluationRow& row : must(rows_of(path))) {
        BOOST_REQUIRE(!row.inputs.empty());
        BOOST_REQUIRE(row.inputs.size() <= stream_config().context);
        BOOST_REQUIRE(row.targets.size() == row.inputs.size());
        BOOST_REQUIRE(row.counted.size() == row.inputs.size());
        for (std::size_t i = 0; i < row.inputs.size(); ++i)
            BOOST_REQUIRE(std::max(row.inputs[i], row.targets[i]) < 300u);
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(tokenizers) {
    Trial trial("tokenizer.bin", tiny_tokenizer(300), read_tokenizer, use_tokenizer);
    trial.cut();
    trial.flip(0, trial.good().size(), [](std::size_t at, const std::vector<std::byte>&) {
        if (at >= 24) return at < 32 ? Must::be_accepted : Must::either; // the hash, the merges
        return Must::be_refused;
    });
    for (std::size_t at = 8; at < 24; at += 4)
        trial.hostile(at, 4, any);
    trial.hostile(24, 8,
                  [](std::size_t, const std::vector<std::byte>&) { return Must::be_accepted; });
}

BOOST_AUTO_TEST_CASE(the_largest_tables_that_are_accepted) {
    // Chains of doubling take the most room for their bytes in the file.
    for (const std::uint32_t merges : {1000u, 20000u}) {
        std::vector<std::byte> bytes = tiny_tokenizer(256 + merges + 16);
        std::memcpy(bytes.data() + 12, &merges, 4);
        bytes.resize(32 + 4 * merges);
        for (std::uint32_t i = 0; i < merges; ++i) {
            // 6 steps from a byte pair that no other chain begins with: 2 to 64 bytes.
            const std::uint32_t chain = i / 6;
            const std::uint32_t left = i % 6 == 0 ? chain & 0xff : 255 + i;
            const std::uint32_t right = i % 6 == 0 ? chain >> 8 : 255 + i;
            const std::uint32_t merge = left | right << 16;
            std::memcpy(bytes.data() + 32 + 4 * i, &merge, 4);
        }
        Trial trial("  of " + std::to_string(merges) + " merges", bytes, read_tokenizer,
                    use_tokenizer, 32);
        BOOST_TEST(!trial.whole(bytes));
    }
}

BOOST_AUTO_TEST_CASE(token_streams) {
    for (const bool chat : {false, true})
        for (const std::uint64_t block : {0, 8}) {
            Trial trial(chat ? ".tok chat" : ".tok plain", token_stream(chat, block), read_stream,
                        use_stream);
            trial.cut();
            trial.flip(0, trial.good().size(), [](std::size_t at, const std::vector<std::byte>&) {
                return at < 16 || at / 8 == 3 ? Must::be_refused : Must::either;
            });
            for (const std::size_t at : {8u, 24u})
                trial.hostile(at, 8, [](std::size_t, const std::vector<std::byte>&) {
                    return Must::be_refused;
                });
            for (const std::size_t at : {16u, 32u, 40u, 48u})
                trial.hostile(at, 8, any);
        }
}

BOOST_AUTO_TEST_CASE(texts) {
    const Tokenizer tokenizer(must(parse_tokenizer(tiny_tokenizer(300), "t")));
    // Every pair of bytes, every three with a lead byte first, and long runs of one kind.
    std::string pairs;
    for (unsigned a = 0; a < 256; ++a)
        for (unsigned b = 0; b < 256; ++b) {
            const char text[] = {static_cast<char>(a), static_cast<char>(b)};
            check_round_trip(tokenizer, {text, 2});
            pairs.append(text, 2);
        }
    check_round_trip(tokenizer, pairs);
    for (unsigned lead = 0xC0; lead < 256; ++lead)
        for (unsigned a = 0x70; a < 256; a += 5) {
            const char text[] = {static_cast<char>(lead), static_cast<char>(a), '\x80', 'a'};
            check_round_trip(tokenizer, {text, 4});
        }
    const std::size_t length = thin() ? 100000 : 1000000;
    std::size_t tried = 0;
    for (const std::string& unit : {std::string("a"), std::string(1, '\0'), std::string(" "),
                                    std::string("\n"), std::string("\xff"), std::string("\xf0\x9f"),
                                    std::string("1"), std::string("'"), random_bytes(997, 2)}) {
        std::string text;
        while (text.size() < length)
            text += unit;
        const Allocations allocations;
        check_round_trip(tokenizer, text);
        BOOST_TEST(allocations.peak() < 64 * text.size());
        ++tried;
    }
    std::printf("text           %zu lines of %zu bytes came back as they were\n", tried, length);
}

BOOST_AUTO_TEST_SUITE_END()
