// SPDX-License-Identifier: MIT
// Tests of turning a stream of token bytes into whole characters.
#include "engine/conversation.h"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace mnm;

BOOST_AUTO_TEST_SUITE(utf8_stream_test)

namespace {

const std::string R = "\xEF\xBF\xBD";

std::string whole(std::string_view bytes) {
    Utf8Stream stream;
    std::string out = stream.push(bytes);
    return out + stream.finish();
}

bool valid(std::string_view text); // below: the table of well-formed sequences (Unicode, table 3-7)

bool in(std::string_view text, std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && static_cast<unsigned char>(text[i]) >= low &&
           static_cast<unsigned char>(text[i]) <= high;
}

bool valid(std::string_view text) {
    struct Row {
        unsigned lead_low, lead_high, low, high;
        std::size_t length;
    };
    static constexpr Row rows[] = {
        {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    while (!text.empty()) {
        std::size_t length = 0;
        for (const Row& row : rows) {
            if (!in(text, 0, row.lead_low, row.lead_high)) continue;
            bool good = row.length == 1 || in(text, 1, row.low, row.high);
            for (std::size_t i = 2; i < row.length; ++i)
                good = good && in(text, i, 0x80, 0xBF);
            if (good) length = row.length;
        }
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_emoji_over_two_tokens_is_one_emoji) {
    Utf8Stream stream;
    BOOST_TEST(stream.push("a\xF0\x9F") == "a");
    BOOST_TEST(stream.push("\x98\x80!") == "\xF0\x9F\x98\x80!");
    BOOST_TEST(stream.finish().empty());
}

BOOST_AUTO_TEST_CASE(bad_bytes_are_not_held) {
    Utf8Stream stream;
    BOOST_TEST(stream.push("\xFF") == R);
    BOOST_TEST(stream.push("\xFF\xFF") == R + R);
    BOOST_TEST(stream.push("\xF0\x9F").empty());
    BOOST_TEST(stream.push("\\") == R + "\\"); // a backslash after a lead byte is kept
}

BOOST_AUTO_TEST_CASE(the_end_inside_a_character_is_one_mark) {
    Utf8Stream stream;
    BOOST_TEST(stream.push("\xF0\x9F").empty());
    BOOST_TEST(stream.finish() == R);
    BOOST_TEST(stream.finish().empty());
    BOOST_TEST(stream.push("ok") == "ok");
}

// The examples of the Unicode standard, tables 3-8 to 3-11, and its section on U+FFFD substitution.
BOOST_AUTO_TEST_CASE(maximal_subparts) {
    BOOST_TEST(whole("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
               R + R + R + R + R + R + R + R + "A");
    BOOST_TEST(whole("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") ==
               R + R + R + R + R + R + R + R + "A");
    BOOST_TEST(whole("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
               R + R + R + R + R + "A" + R + R + "B");
    BOOST_TEST(whole("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == R + R + R + R + "A");
}

BOOST_AUTO_TEST_CASE(borders) {
    for (const char* good : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                             "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        BOOST_TEST(whole(good) == good);
    }
    BOOST_TEST(whole("\xC1\xBF") == R + R);
    BOOST_TEST(whole("\xF5\x80") == R + R);
    BOOST_TEST(whole(std::string_view("\0", 1)) == std::string_view("\0", 1));
}

BOOST_AUTO_TEST_CASE(any_bytes_in_any_pieces_give_the_same_valid_text_at_once) {
    std::mt19937_64 random(1);
    constexpr std::string_view favourites = "A\x80\x8F\x90\x9F\xA0\xBF\xC2\xE0\xE2\xED\xF0\xF4\xFF";
    for (int i = 0; i < 20000; ++i) {
        std::string bytes;
        for (std::size_t n = random() % 16; n > 0; --n) {
            bytes += favourites[random() % favourites.size()];
        }
        const std::string expected = whole(bytes);
        BOOST_REQUIRE(valid(expected));
        if (valid(bytes)) BOOST_REQUIRE(expected == bytes);
        Utf8Stream stream;
        std::string out;
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t n = 1 + random() % 3;
            out += stream.push(std::string_view(bytes).substr(at, n));
            at += n;
        }
        BOOST_REQUIRE(out + stream.finish() == expected);
    }
}

BOOST_AUTO_TEST_SUITE_END()
