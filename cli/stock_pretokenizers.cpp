// SPDX-License-Identifier: MIT
// The pre-tokenizers that llama.cpp knows.
#include "cli/stock_pretokenizers.h"

#include "cli/report.h"
#include "engine/tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace mnm::cli {
namespace {

struct Stock {
    std::string_view name;
    const char* pattern;
};

/// Raw strings as llama.cpp has them, one alternation each.
constexpr Stock stocks[] = {
    {"llama-bpe", R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
                  R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                  R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen2", R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
              R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
              R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"bailingmoe", R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE]))"
                   R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                   R"(|\s*[\r\n]|\s+(?!\S)|\s+)"},
    // The last alternative stands for llama.cpp's rule that what no pattern takes is a piece too.
    {"gpt-2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
};

struct CodeDelete {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDelete {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

std::string pattern_error(int code) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(code, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

/// Ends of the pieces, ascending; the last one is the text's size.
Result<std::vector<std::size_t>> stock_ends(const Stock& stock, const std::string& text) {
    int problem = 0;
    PCRE2_SIZE where = 0;
    const std::unique_ptr<pcre2_code, CodeDelete> code(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(stock.pattern), PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP, &problem, &where, nullptr));
    if (!code)
        return Error{fmt::format("pre-tokenizer {}: {}", stock.name, pattern_error(problem))};
    // Speed only; where it is not available, matching is slower.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    const std::unique_ptr<pcre2_match_data, MatchDelete> match(
        pcre2_match_data_create_from_pattern(code.get(), nullptr));

    std::vector<std::size_t> ends;
    std::size_t position = 0;
    while (position < text.size()) {
        // The text has been made valid, and was checked whole by the first match.
        const std::uint32_t flags = position == 0 ? 0 : PCRE2_NO_UTF_CHECK;
        const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                      text.size(), position, flags, match.get(), nullptr);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0)
            return Error{fmt::format("pre-tokenizer {}: {}", stock.name, pattern_error(found))};
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.get());
        if (span[0] > position) ends.push_back(span[0]);
        ends.push_back(span[1]);
        position = span[1];
    }
    if (position < text.size()) ends.push_back(text.size());
    return ends;
}

std::vector<std::size_t> own_ends(std::string_view text) {
    std::vector<std::size_t> ends;
    for (std::size_t position = 0; position < text.size();) {
        position += Tokenizer::next_chunk(text.substr(position)).size();
        ends.push_back(position);
    }
    return ends;
}

void count_place(SplitDifference& difference, std::string_view place) {
    if (difference.places() == 0) difference.first = place;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool blank = place.find_first_not_of(" \t\v\f\r\n") == std::string_view::npos;
    if (std::all_of(place.begin(), place.end(), is_digit)) {
        ++difference.numbers;
    } else if (blank && place.find_first_of("\r\n") != std::string_view::npos) {
        ++difference.line_breaks;
    } else {
        ++difference.others;
    }
}

} // namespace

std::vector<std::string> stock_pretokenizers() {
    std::vector<std::string> names;
    for (const Stock& stock : stocks)
        names.emplace_back(stock.name);
    return names;
}

Result<SplitDifference> compare_split(const std::string& pretokenizer, std::string_view text) {
    const auto* stock = std::find_if(std::begin(stocks), std::end(stocks),
                                     [&](const Stock& s) { return s.name == pretokenizer; });
    if (stock == std::end(stocks))
        return Error{fmt::format("there is no pattern for the pre-tokenizer {}", pretokenizer)};
    const std::string valid = valid_utf8(text);
    const std::vector<std::size_t> own = own_ends(valid);
    MNM_TRY(const std::vector<std::size_t> theirs, stock_ends(*stock, valid));
    SplitDifference difference;
    difference.pieces = own.size();
    // A place lies between two ends that both have; it counts when only one of them has an end
    // inside.
    std::size_t a = 0, b = 0, begin = 0;
    while (a < own.size() && b < theirs.size()) {
        bool same = true;
        while (own[a] != theirs[b]) {
            same = false;
            ++(own[a] < theirs[b] ? a : b);
        }
        if (!same) count_place(difference, std::string_view(valid).substr(begin, own[a] - begin));
        begin = own[a];
        ++a;
        ++b;
    }
    return difference;
}

std::string_view sample_text() {
    return "Once upon a time, in 1834, there was a king who'd three sons; the youngest wasn't 20.\n"
           "\n"
           "\"Go,\" said the king, \"and bring me 1000 apples!\"  They rode 37 miles, then 412 "
           "more...\n"
           "\n\n"
           "    for (int i = 0; i < 128; ++i) total += price[i] * 0.075; // 7.5 %\n"
           "\tDon't WE'RE they'll I'VE \xE2\x80\x98"
           "quoted\xE2\x80\x99 na\xC3\xAFve caf\xC3\xA9 "
           "\xE2\x80\x94 \xF0\x9F\x98\x8A\r\n"
           "\r\n"
           "Chapter 12 (pp. 345-678): $9.99, 3/4, 2024-05-01 and 1,234,567.\n";
}

} // namespace mnm::cli
