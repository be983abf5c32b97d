// SPDX-License-Identifier: MIT
// Tests of encoding and decoding with merges made up here.
#include "tests/engine/naive_tokenizer.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <thread>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(tokenizer_test)

namespace {

std::vector<TokenId> naive_encode(const TokenizerFile& file, std::string_view text) {
    std::vector<TokenId> ids;
    for (const std::string& chunk : naive_chunks(text)) {
        const std::vector<TokenId> part = naive_merge(file, chunk);
        ids.insert(ids.end(), part.begin(), part.end());
    }
    return ids;
}

TokenizerFile file_of(std::vector<std::pair<std::uint16_t, std::uint16_t>> merges) {
    TokenizerFile file;
    file.merges = std::move(merges);
    file.first_special = static_cast<std::uint32_t>(256 + file.merges.size());
    file.specials = 16;
    file.vocab = file.first_special + 16;
    return file;
}

using Ids = std::vector<TokenId>;

} // namespace

BOOST_AUTO_TEST_CASE(the_lowest_numbered_merge_goes_first_and_left_to_right) {
    const Tokenizer tokenizer(
        file_of({{'b', 'c'}, {'a', 'b'}, {'a', 256}, {'x', 'x'}, {259, 259}}));
    BOOST_TEST(tokenizer.encode("abc") == (Ids{258}), boost::test_tools::per_element());
    BOOST_TEST(tokenizer.encode("abab") == (Ids{257, 257}), boost::test_tools::per_element());
    BOOST_TEST(tokenizer.encode("xxx") == (Ids{259, 'x'}), boost::test_tools::per_element());
    BOOST_TEST(tokenizer.encode("xxxxx") == (Ids{260, 'x'}), boost::test_tools::per_element());
    BOOST_TEST(tokenizer.encode("").empty());
    Ids appended = {1, 2};
    tokenizer.encode("abc", appended);
    BOOST_TEST(appended == (Ids{1, 2, 258}), boost::test_tools::per_element());
}

// "ab" is spelt by token 257, but the merge of "bc" comes first in "abc".
BOOST_AUTO_TEST_CASE(a_token_that_merging_never_makes_is_not_used) {
    const Tokenizer tokenizer(file_of({{'b', 'c'}, {'a', 'b'}, {257, 'c'}}));
    BOOST_TEST(tokenizer.bytes(258) == "abc");
    BOOST_TEST(tokenizer.encode("abc") == (Ids{'a', 256}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bytes_of_tokens) {
    TokenizerFile file = file_of({{'h', 'i'}, {256, '!'}});
    file.first_special = 270; // 258..269 are empty
    file.vocab = 286;
    const Tokenizer tokenizer(std::move(file));
    BOOST_TEST(tokenizer.bytes('A') == "A");
    BOOST_TEST(tokenizer.bytes(0) == std::string_view("\0", 1));
    BOOST_TEST(tokenizer.bytes(255) == "\xFF");
    BOOST_TEST(tokenizer.bytes(257) == "hi!");
    BOOST_TEST(tokenizer.bytes(258).empty());
    BOOST_TEST(tokenizer.bytes(269).empty());
    BOOST_TEST(tokenizer.bytes(tokenizer.bos()) == "<|bos|>");
    BOOST_TEST(tokenizer.bytes(tokenizer.user()) == "<|user|>");
    BOOST_TEST(tokenizer.bytes(tokenizer.assistant()) == "<|assistant|>");
    BOOST_TEST(tokenizer.bytes(tokenizer.system()) == "<|system|>");
    BOOST_TEST(tokenizer.bytes(tokenizer.end()) == "<|end|>");
    BOOST_TEST(tokenizer.bytes(275) == "<|reserved_5|>");
    BOOST_TEST(tokenizer.bytes(285) == "<|reserved_15|>");
    BOOST_TEST(tokenizer.bytes(286).empty());
    BOOST_TEST(tokenizer.bytes(UINT32_MAX).empty());
    BOOST_TEST(!tokenizer.is_special(269));
    BOOST_TEST(tokenizer.is_special(270));
    BOOST_TEST(tokenizer.is_special(285));
    BOOST_TEST(!tokenizer.is_special(286));
    const Ids ids = {257, 270, 'x', 286, 258};
    BOOST_TEST(tokenizer.decode(ids) == "hi!<|bos|>x");
}

BOOST_AUTO_TEST_CASE(text_never_becomes_a_special_token) {
    const Tokenizer tokenizer(file_of({{'<', '|'}, {'|', '>'}, {'e', 'n'}, {258, 'd'}}));
    for (const std::string text : {"<|end|>", "<|bos|><|user|>hi<|end|><|assistant|>"}) {
        const Ids ids = tokenizer.encode(text);
        for (const TokenId id : ids)
            BOOST_TEST(!tokenizer.is_special(id));
        BOOST_TEST(tokenizer.decode(ids) == text);
    }
}

BOOST_AUTO_TEST_CASE(random_text_gets_the_ids_the_rule_gives) {
    std::mt19937_64 random(4);
    for (int round = 0; round < (thin() ? 4 : 20); ++round) {
        const TokenizerFile file = random_tokenizer(random, nasty_text(random, 400), 120);
        BOOST_REQUIRE(file.merges.size() > 60);
        const Tokenizer tokenizer(file);
        for (int i = 0; i < 50; ++i) {
            const std::string text = nasty_text(random, 1 + random() % 60);
            const Ids ids = tokenizer.encode(text);
            BOOST_REQUIRE(ids == naive_encode(file, text));
            BOOST_REQUIRE(ids == tokenizer.encode(text)); // now from the cache
            BOOST_REQUIRE(tokenizer.decode(ids) == text);
        }
    }
}

// Lengths around every switch: what the cache holds, what is merged in place, what is queued.
BOOST_AUTO_TEST_CASE(chunks_of_any_length_get_the_ids_the_rule_gives) {
    std::mt19937_64 random(5);
    std::string sample;
    for (int i = 0; i < 600; ++i)
        sample += "aab"[random() % 3];
    const TokenizerFile file = random_tokenizer(random, sample, 60);
    BOOST_REQUIRE(file.merges.size() > 30);
    const Tokenizer tokenizer(file);
    for (std::size_t length = 1; length <= 200; length += thin() ? 7 : 1) {
        for (int i = 0; i < 4; ++i) {
            std::string chunk;
            while (chunk.size() < length)
                chunk += "aabc"[random() % 4];
            BOOST_REQUIRE(tokenizer.encode(chunk) == naive_merge(file, chunk));
            BOOST_REQUIRE(tokenizer.encode(chunk + std::string(20, '\n')).size() ==
                          naive_merge(file, chunk).size() + 20);
        }
    }
}

// More chunks than the cache holds, met again after others took their places.
BOOST_AUTO_TEST_CASE(chunks_that_share_a_place_in_the_cache_stay_apart) {
    std::mt19937_64 random(6);
    std::vector<std::string> words;
    for (int i = 0; i < 30000; ++i) {
        std::string word = " ";
        for (std::size_t n = 1 + random() % 12; n > 0; --n)
            word += "abcd"[random() % 4];
        words.push_back(word);
    }
    const TokenizerFile file = random_tokenizer(random, words[0] + words[1] + words[2], 20);
    const Tokenizer tokenizer(file);
    std::string text;
    Ids expected;
    for (int round = 0; round < 2; ++round) {
        for (const std::string& word : words) {
            text += word;
            const Ids part = naive_merge(file, word);
            expected.insert(expected.end(), part.begin(), part.end());
        }
    }
    BOOST_TEST(bool(tokenizer.encode(text) == expected));
}

BOOST_AUTO_TEST_CASE(threads_may_encode_at_once) {
    std::mt19937_64 random(7);
    const std::string text = nasty_text(random, 20000);
    const Tokenizer tokenizer(random_tokenizer(random, text.substr(0, 500), 100));
    const Ids expected = tokenizer.encode(text);
    std::vector<Ids> found(4);
    std::vector<std::thread> threads;
    for (Ids& ids : found) {
        threads.emplace_back([&] {
            for (int i = 0; i < 5; ++i)
                ids = tokenizer.encode(text);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const Ids& ids : found)
        BOOST_TEST(bool(ids == expected));
}

BOOST_AUTO_TEST_CASE(any_bytes_come_back) {
    std::mt19937_64 random(8);
    std::string bytes(300'000, '\0');
    for (char& c : bytes)
        c = static_cast<char>(random());
    const Tokenizer tokenizer(random_tokenizer(random, bytes.substr(0, 500), 200));
    BOOST_TEST(bool(tokenizer.decode(tokenizer.encode(bytes)) == bytes));
}

// Pairs of pairs up to 32 alike: merging by rescanning the chunk would take 10^12 steps.
BOOST_AUTO_TEST_CASE(a_million_of_the_same_character) {
    const std::size_t n = thin() ? 128'000 : 1'000'000;
    const auto start = std::chrono::steady_clock::now();
    for (const char c : {'x', ' ', '\n', '!', '\'', '\xFF'}) {
        const auto byte = static_cast<unsigned char>(c);
        const Tokenizer tokenizer(
            file_of({{byte, byte}, {256, 256}, {257, 257}, {258, 258}, {259, 259}}));
        const Ids ids = tokenizer.encode(std::string(n, c));
        BOOST_TEST(ids.size() == n / 32);
        BOOST_TEST(bool(ids == Ids(n / 32, 260)));
    }
    const Tokenizer digits(file_of({{'7', '7'}}));
    BOOST_TEST(bool(digits.encode(std::string(n, '7')) == Ids(n / 2, 256)));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    BOOST_TEST(seconds.count() < 60);
}

// The parser refuses such files; a file filled by hand must not break anything either.
BOOST_AUTO_TEST_CASE(merges_of_tokens_not_made_yet_are_ignored) {
    const Tokenizer tokenizer(file_of({{'a', 256}, {300, 'b'}, {'a', 'b'}, {'a', 'b'}}));
    BOOST_TEST(tokenizer.encode("aabb") == (Ids{'a', 258, 'b'}), boost::test_tools::per_element());
    BOOST_TEST(tokenizer.bytes(256).empty());
}

BOOST_AUTO_TEST_SUITE_END()
