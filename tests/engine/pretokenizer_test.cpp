// SPDX-License-Identifier: MIT
// Tests of the chunk rule.
#include "tests/engine/naive_tokenizer.h"

#include <boost/test/unit_test.hpp>

#include <chrono>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(pretokenizer_test)

namespace {

std::vector<std::string> chunks(std::string_view text) {
    std::vector<std::string> out;
    while (!text.empty()) {
        const std::string_view chunk = Tokenizer::next_chunk(text);
        if (chunk.empty() ||
            chunk.data() != text.data()) { // a plain test: this runs millions of times
            BOOST_FAIL("not a chunk at the front of the text");
        }
        out.emplace_back(chunk);
        text.remove_prefix(chunk.size());
    }
    return out;
}

void check(std::string_view text, const std::vector<std::string>& expected) {
    BOOST_TEST_CONTEXT("text \"" << text << '"') {
        BOOST_TEST(chunks(text) == expected, boost::test_tools::per_element());
        BOOST_TEST(naive_chunks(text) == expected, boost::test_tools::per_element());
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(examples_of_the_format_description) {
    check("Hello world", {"Hello", " world"});
    check("don't", {"don", "'t"});
    check("I'll WE'RE they've", {"I", "'ll", " WE", "'RE", " they", "'ve"});
    check("'sam", {"'s", "am"});
    check("123456", {"12", "34", "56"});
    check("$9.99", {"$", "9", ".", "99"});
    check("  hello", {" ", " hello"});
    check("hello!!!", {"hello", "!!!"});
    check("(test)", {"(test", ")"});
    check("a... b", {"a", "...", " b"});
}

BOOST_AUTO_TEST_CASE(white_space_goes_up_to_the_last_newline_and_lends_its_last_blank) {
    check("a  b", {"a", " ", " b"});
    check("\n\n\n x", {"\n\n\n", " x"});
    check("\t \t x", {"\t \t", " x"});
    check("x \n \n  y", {"x", " \n \n", " ", " y"});
    check("end \n  ", {"end", " \n", "  "});
    check("a\r\n\r\nb", {"a", "\r\n\r\n", "b"});
    check("!\n\n x", {"!\n\n", " x"});
    check(" 1", {" ", "1"});
    check("\t\t!", {"\t", "\t", "!"});
    check("\v\f", {"\v\f"});
    check("\n!", {"\n", "!"});
    check("\nx", {"\n", "x"});
}

BOOST_AUTO_TEST_CASE(characters_outside_ascii) {
    check("\xC2\xA0word", {"\xC2\xA0word"});               // U+00A0: a mark before letters
    check("a\xC3\x80", {"a\xC3\x80"});                     // U+00C0: a letter
    check("a\xC2\xBF", {"a", "\xC2\xBF"});                 // U+00BF: a mark
    check("a\xE1\xBF\xBF", {"a\xE1\xBF\xBF"});             // U+1FFF
    check("a\xE2\x80\x80", {"a", "\xE2\x80\x80"});         // U+2000
    check("a\xE3\x80\xBF", {"a", "\xE3\x80\xBF"});         // U+303F
    check("a\xE3\x81\x80", {"a\xE3\x81\x80"});             // U+3040
    check("a\xF0\x9E\xBF\xBF", {"a\xF0\x9E\xBF\xBF"});     // U+1EFFF
    check("a\xF0\x9F\x80\x80", {"a", "\xF0\x9F\x80\x80"}); // U+1F000
    check("a\xF0\x9F\xBF\xBF", {"a", "\xF0\x9F\xBF\xBF"}); // U+1FFFF
    check("a\xF0\xA0\x80\x80", {"a\xF0\xA0\x80\x80"});     // U+20000
    check("a\x80\xBF", {"a\x80\xBF"});                     // stray continuations: letters
    check("a\xE0\x82\x80!", {"a\xE0\x82\x80", "!"});       // U+0080 spelt too long: stray bytes
    check("a\xE2\x80", {"a\xE2\x80"});                     // cut short
    check("12\xEF\xBC\x93", {"12", "\xEF\xBC\x93"});       // a wide digit is a letter
}

BOOST_AUTO_TEST_CASE(random_text_is_cut_as_the_rule_says) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) {
        const std::string text = nasty_text(random, 1 + random() % 24);
        BOOST_REQUIRE(chunks(text) == naive_chunks(text));
    }
    for (int i = 0; i < 20000; ++i) { // any bytes
        std::string text(1 + random() % 24, '\0');
        for (char& c : text)
            c = static_cast<char>(random());
        BOOST_REQUIRE(chunks(text) == naive_chunks(text));
    }
}

// A million of one kind took hours if any alternative backtracked over its run.
BOOST_AUTO_TEST_CASE(long_runs_take_linear_time) {
    constexpr std::size_t n = 1'000'000;
    const auto start = std::chrono::steady_clock::now();
    const auto count = [](const std::string& text) { return chunks(text).size(); };
    for (const char c : {'x', '!', '\xFF', '\n', '\'', ' '}) {
        BOOST_TEST(count(std::string(n, c)) == 1U);
    }
    BOOST_TEST(count(std::string(n, '7')) == n / 2);
    BOOST_TEST(count(std::string(n, ' ') + "\n") == 1U);
    BOOST_TEST(count(std::string(n, ' ') + "x") == 2U);
    BOOST_TEST(count(std::string(n, ' ') + "1") == 3U);
    BOOST_TEST(count("\n" + std::string(n, ' ') + "x") == 3U);
    std::string contractions, blanks;
    for (std::size_t i = 0; i < n; ++i)
        contractions += "'s";
    for (std::size_t i = 0; i < n; ++i)
        blanks += " \t1";
    BOOST_TEST(count(contractions) == n);
    BOOST_TEST(count(blanks) == 3 * n);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    BOOST_TEST(seconds.count() < 20);
}

BOOST_AUTO_TEST_SUITE_END()
