// SPDX-License-Identifier: MIT
// The chunk rule against the pattern itself, matched by PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tests/engine/naive_tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <pcre2.h>

#include <memory>

using namespace mnm;
using namespace mnm::tests;

namespace {

/// The pattern with what stands for a letter and a digit put in.
std::string pattern(const std::string& letter, const std::string& digit) {
    return "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n" + letter + digit + "]?[" + letter +
           "]+|[" + digit + "]{1,2}| ?[^\\s" + letter + digit +
           "]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
}

class Matcher {
  public:
    explicit Matcher(const std::string& text) {
        int error = 0;
        PCRE2_SIZE offset = 0;
        code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF,
                                  &error, &offset, nullptr));
        BOOST_REQUIRE(code_ != nullptr);
        match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    }
    std::vector<std::string> chunks(const std::string& text) const {
        std::vector<std::string> out;
        for (std::size_t at = 0; at < text.size();) {
            const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                          text.size(), at, PCRE2_ANCHORED, match_.get(), nullptr);
            BOOST_REQUIRE(found > 0);
            const std::size_t end = pcre2_get_ovector_pointer(match_.get())[1];
            BOOST_REQUIRE(end > at);
            out.push_back(text.substr(at, end - at));
            at = end;
        }
        return out;
    }

  private:
    struct Free {
        void operator()(pcre2_code* code) const { pcre2_code_free(code); }
        void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
    };
    std::unique_ptr<pcre2_code, Free> code_;
    std::unique_ptr<pcre2_match_data, Free> match_;
};

std::vector<std::string> ours(std::string_view text) {
    std::vector<std::string> out;
    while (!text.empty()) {
        out.emplace_back(Tokenizer::next_chunk(text));
        text.remove_prefix(out.back().size());
    }
    return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(pretokenizer_pcre2_test)

BOOST_AUTO_TEST_CASE(ascii_text_is_cut_as_the_pattern_does) {
    const Matcher matcher(pattern("\\p{L}", "\\p{N}"));
    constexpr std::string_view favourites = "aslLrRevVtdD'' \t\v\f\r\n\n19!.";
    std::mt19937_64 random(2);
    for (int i = 0; i < 30000; ++i) {
        std::string text;
        for (std::size_t n = 1 + random() % 30; n > 0; --n) {
            text += random() % 8 == 0 ? static_cast<char>(random() % 128)
                                      : favourites[random() % favourites.size()];
        }
        BOOST_REQUIRE(ours(text) == matcher.chunks(text));
    }
}

BOOST_AUTO_TEST_CASE(all_text_is_cut_as_the_pattern_with_our_letters_does) {
    const Matcher matcher(
        pattern("a-zA-Z\\x{C0}-\\x{1FFF}\\x{3040}-\\x{1EFFF}\\x{20000}-\\x{10FFFF}", "0-9"));
    constexpr char32_t borders[] = {0x80,   0xA0,   0xBF,    0xC0,    0x17F,   0x1FFF,
                                    0x2000, 0x2019, 0x2FFF,  0x3000,  0x303F,  0x3040,
                                    0xFFFF, 0xD7FF, 0x1EFFF, 0x1F000, 0x1FFFF, 0x20000};
    constexpr std::string_view ascii = "asL'' \n\t1!";
    std::mt19937_64 random(3);
    for (int i = 0; i < 30000; ++i) {
        std::string text;
        for (std::size_t n = 1 + random() % 20; n > 0; --n) {
            const std::uint64_t kind = random() % 8;
            if (kind < 5)
                text += ascii[random() % ascii.size()];
            else if (kind < 7)
                text += naive_utf8(borders[random() % std::size(borders)]);
            else
                text += naive_utf8(static_cast<char32_t>(0x10000 + random() % 0x100000));
        }
        BOOST_REQUIRE(ours(text) == matcher.chunks(text));
    }
}

BOOST_AUTO_TEST_SUITE_END()
