// SPDX-License-Identifier: MIT
// The fixture's tokenizer and token streams open with the figures their trainer published.
#include "tests/fixtures.h"
#include "tests/formats/synthetic.h"

#include "formats/token_stream.h"
#include "formats/tokenizer_file.h"

#include <boost/test/unit_test.hpp>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(tokens_fixture_test)

BOOST_AUTO_TEST_CASE(tokenizer_opens) {
    const std::string path = tales("tokenizer.bin");
    const auto file = parse_tokenizer(read_bytes(path), path);
    BOOST_REQUIRE_MESSAGE(file, why(file));
    BOOST_TEST(file->vocab == 2048u);
    BOOST_TEST(file->merges.size() == 1776u);
    BOOST_TEST(file->first_special == 2032u);
    BOOST_TEST(file->specials == 16u);
}

BOOST_AUTO_TEST_CASE(streams_open) {
    const auto plain = TokenStream::open(tales("val.tok"));
    BOOST_REQUIRE_MESSAGE(plain, why(plain));
    BOOST_TEST(plain->tokens.size() == 40u * 256 + 1);
    BOOST_TEST(!plain->chat);
    const auto chat = TokenStream::open(tales("chat-val.tok"));
    BOOST_REQUIRE_MESSAGE(chat, why(chat));
    BOOST_TEST(chat->chat);
    BOOST_TEST(chat->tokens.size() == 24u * 256 + 1);
    BOOST_TEST(chat->tokenizer_hash == plain->tokenizer_hash);
    std::size_t targets = 0;
    for (std::size_t i = 1; i < chat->tokens.size(); ++i)
        targets += (chat->tokens[i] & TokenStream::target_bit) != 0;
    BOOST_TEST(targets == 3134u);
}

BOOST_AUTO_TEST_SUITE_END()
