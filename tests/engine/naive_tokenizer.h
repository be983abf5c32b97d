// SPDX-License-Identifier: MIT
// The chunk rule and the merge rule, transcribed word for word from the format description; slow.
#pragma once

#include "engine/tokenizer.h"

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mnm::tests {

struct NaiveCharacter {
    std::string bytes;
    char32_t code; ///< of a stray byte: one that is a letter
};

inline std::string naive_utf8(char32_t c) {
    const auto tail = [c](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
    if (c < 0x80) return {static_cast<char>(c)};
    if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(0)};
    if (c < 0x10000) return {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
    return {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

/// What spells a character is what comes out when the character is written again.
inline std::vector<NaiveCharacter> naive_characters(std::string_view text) {
    std::vector<NaiveCharacter> out;
    while (!text.empty()) {
        NaiveCharacter found{std::string(text.substr(0, 1)), U'\u00E9'};
        const unsigned lead = static_cast<unsigned char>(text[0]);
        if (lead < 0x80) found.code = lead;
        for (std::size_t n = 2; n <= 4 && n <= text.size(); ++n) {
            char32_t code = lead & (0x7FU >> n);
            for (std::size_t i = 1; i < n; ++i) {
                code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
            }
            if (naive_utf8(code) == text.substr(0, n))
                found = {std::string(text.substr(0, n)), code};
        }
        text.remove_prefix(found.bytes.size());
        out.push_back(found);
    }
    return out;
}

inline std::vector<std::string> naive_chunks(std::string_view text) {
    const std::vector<NaiveCharacter> all = naive_characters(text);
    const std::size_t n = all.size();
    const auto is_newline = [&](std::size_t i) {
        return i < n && (all[i].code == '\r' || all[i].code == '\n');
    };
    const auto is_space = [&](std::size_t i) {
        return i < n &&
               std::u32string_view(U" \t\v\f\r\n").find(all[i].code) != std::u32string::npos;
    };
    const auto is_digit = [&](std::size_t i) {
        return i < n && all[i].code >= '0' && all[i].code <= '9';
    };
    const auto is_letter = [&](std::size_t i) {
        if (i >= n) return false;
        const char32_t c = all[i].code;
        if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        return !((c >= 0x80 && c <= 0xBF) || (c >= 0x2000 && c <= 0x2FFF) ||
                 (c >= 0x3000 && c <= 0x303F) || (c >= 0x1F000 && c <= 0x1FFFF));
    };
    const auto is_mark = [&](std::size_t i) {
        return i < n && !is_space(i) && !is_letter(i) && !is_digit(i);
    };
    const auto run = [&](std::size_t i, const auto& is) {
        std::size_t count = 0;
        while (is(i + count))
            ++count;
        return count;
    };
    const auto lower = [&](std::size_t i) -> char32_t {
        if (i >= n) return 0;
        const char32_t c = all[i].code;
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    };
    const auto length_at = [&](std::size_t i) -> std::size_t {
        if (all[i].code == '\'') { // '(?i:[sdmt]|ll|ve|re)
            const char32_t a = lower(i + 1), b = lower(i + 2);
            if (a == 's' || a == 'd' || a == 'm' || a == 't') return 2;
            if ((a == 'l' && b == 'l') || (a == 'v' && b == 'e') || (a == 'r' && b == 'e'))
                return 3;
        }
        // [^\r\n\p{L}\p{N}]?\p{L}+
        if (!is_newline(i) && !is_letter(i) && !is_digit(i) && is_letter(i + 1)) {
            return 1 + run(i + 1, is_letter);
        }
        if (is_letter(i)) return run(i, is_letter);
        if (is_digit(i)) return is_digit(i + 1) ? 2 : 1; // \p{N}{1,2}
        for (const std::size_t blank : {1U, 0U}) {       //  ?[^\s\p{L}\p{N}]+[\r\n]*
            if (blank == 1 && all[i].code != ' ') continue;
            const std::size_t marks = run(i + blank, is_mark);
            if (marks > 0) return blank + marks + run(i + blank + marks, is_newline);
        }
        const std::size_t spaces = run(i, is_space);
        for (std::size_t k = spaces + 1; k-- > 0;) { // \s*[\r\n]
            if (is_newline(i + k)) return k + 1;
        }
        for (std::size_t k = spaces; k > 0; --k) { // \s+(?!\S)
            if (i + k == n || is_space(i + k)) return k;
        }
        return spaces; // \s+
    };
    std::vector<std::string> chunks;
    for (std::size_t i = 0; i < n;) {
        std::string chunk;
        for (std::size_t end = i + length_at(i); i < end; ++i)
            chunk += all[i].bytes;
        chunks.push_back(chunk);
    }
    return chunks;
}

/// In the chunk, the lowest-numbered merge present, everywhere, left to right, until none is.
inline std::vector<TokenId> naive_merge(const TokenizerFile& file, std::string_view chunk) {
    std::vector<TokenId> ids;
    for (const char c : chunk)
        ids.push_back(static_cast<unsigned char>(c));
    for (bool found = true; found;) {
        found = false;
        for (std::size_t m = 0; m < file.merges.size() && !found; ++m) {
            std::vector<TokenId> merged;
            for (std::size_t i = 0; i < ids.size(); ++i) {
                if (i + 1 < ids.size() && ids[i] == file.merges[m].first &&
                    ids[i + 1] == file.merges[m].second) {
                    merged.push_back(static_cast<TokenId>(256 + m));
                    ++i;
                    found = true;
                } else {
                    merged.push_back(ids[i]);
                }
            }
            ids = merged;
        }
    }
    return ids;
}

/// Strings of awkward pieces.
inline std::string nasty_text(std::mt19937_64& random, std::size_t pieces) {
    static const std::vector<std::string> alphabet = {"a",
                                                      "b",
                                                      "s",
                                                      "S",
                                                      "l",
                                                      "L",
                                                      "ll",
                                                      "re",
                                                      "VE",
                                                      "'",
                                                      "'",
                                                      "\xE2\x80\x99",
                                                      " ",
                                                      " ",
                                                      "  ",
                                                      "\t",
                                                      "\v",
                                                      "\f",
                                                      "\n",
                                                      "\r",
                                                      "1",
                                                      "9",
                                                      "!",
                                                      ".",
                                                      "(",
                                                      "\xC3\xA9",
                                                      "\xC2\xA0",
                                                      "\xC2\xBF",
                                                      "\xC3\x80",
                                                      "\xE2\x80\x94",
                                                      "\xE3\x80\x82",
                                                      "\xE3\x81\x80",
                                                      "\xE6\x97\xA5",
                                                      "\xF0\x9F\x98\x80",
                                                      "\xF0\xA0\x80\x80",
                                                      "\x80",
                                                      "\xBF",
                                                      "\xC3",
                                                      "\xE2\x80",
                                                      "\xFF",
                                                      "\xF0\x9F",
                                                      "\xED\xA0\x80",
                                                      "\xE0\x82\x80",
                                                      "\xF0\x82\x80\x80",
                                                      "\xC0\x80",
                                                      "\xF5\x80\x80\x80",
                                                      std::string(1, '\0')};
    std::string text;
    for (std::size_t i = 0; i < pieces; ++i)
        text += alphabet[random() % alphabet.size()];
    return text;
}

/// A tokenizer whose merges occur in `sample`: of pairs met there while merging, in random order.
inline TokenizerFile random_tokenizer(std::mt19937_64& random, const std::string& sample,
                                      std::size_t merges) {
    TokenizerFile file;
    std::set<std::pair<std::uint16_t, std::uint16_t>> used;
    std::vector<TokenId> ids = naive_merge(file, sample);
    for (std::size_t tries = 0; tries < 20 * merges && file.merges.size() < merges; ++tries) {
        if (ids.size() < 2) break;
        const std::size_t at = random() % (ids.size() - 1);
        const std::pair pair(static_cast<std::uint16_t>(ids[at]),
                             static_cast<std::uint16_t>(ids[at + 1]));
        if (!used.insert(pair).second) continue;
        file.merges.push_back(pair);
        if (random() % 4 == 0) ids = naive_merge(file, sample);
    }
    file.first_special = static_cast<std::uint32_t>(256 + file.merges.size() + 5);
    file.specials = 16;
    file.vocab = file.first_special + 16;
    return file;
}

} // namespace mnm::tests
