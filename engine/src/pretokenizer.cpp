// SPDX-License-Identifier: MIT
// The chunk rule by hand: the alternatives of the pattern in their order, without backtracking.
#include "engine/src/pretokenizer.h"

#include <array>

namespace mnm {
namespace {

using Byte = unsigned char;

enum class Kind : Byte { letter, digit, space, newline, punctuation, non_ascii };

constexpr std::array<Kind, 256> make_kinds() {
    std::array<Kind, 256> kinds{};
    for (unsigned c = 0; c < 256; ++c) {
        const unsigned lower = c | 0x20U;
        if (c >= 0x80)
            kinds[c] = Kind::non_ascii;
        else if (lower >= 'a' && lower <= 'z')
            kinds[c] = Kind::letter;
        else if (c >= '0' && c <= '9')
            kinds[c] = Kind::digit;
        else if (c == '\r' || c == '\n')
            kinds[c] = Kind::newline;
        else if (c == ' ' || c == '\t' || c == '\v' || c == '\f')
            kinds[c] = Kind::space;
        else
            kinds[c] = Kind::punctuation;
    }
    return kinds;
}
constexpr std::array<Kind, 256> kinds = make_kinds();

struct Character {
    Kind kind;
    Byte length;
};

/// A byte that is no part of a well-formed character is a letter of its own.
Character non_ascii_character(const Byte* p, const Byte* end) noexcept {
    constexpr Character stray = {Kind::letter, 1};
    const unsigned lead = *p;
    const int length = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
    if (length == 1 || end - p < length) return stray;
    unsigned code = lead & (0x7FU >> length);
    for (int i = 1; i < length; ++i) {
        if ((p[i] & 0xC0U) != 0x80) return stray;
        code = code << 6 | (p[i] & 0x3FU);
    }
    // Too long a spelling of a smaller number. Surrogates and numbers past U+10FFFF need no test:
    // they are letters, whole or byte by byte.
    if ((length == 3 && code < 0x800) || (length == 4 && code < 0x10000)) return stray;
    const bool punctuation =
        code <= 0xBF || (code >= 0x2000 && code <= 0x303F) || (code >= 0x1F000 && code <= 0x1FFFF);
    return {punctuation ? Kind::punctuation : Kind::letter, static_cast<Byte>(length)};
}

inline Character character(const Byte* p, const Byte* end) noexcept {
    const Kind kind = kinds[*p];
    if (kind == Kind::non_ascii) return non_ascii_character(p, end);
    return {kind, 1};
}

/// Past the characters of one kind (letter or punctuation) that stand at p.
inline const Byte* skip(const Byte* p, const Byte* end, Kind kind) noexcept {
    for (;;) {
        while (p != end && kinds[*p] == kind)
            ++p;
        if (p == end || kinds[*p] != Kind::non_ascii) return p;
        const Character c = non_ascii_character(p, end);
        if (c.kind != kind) return p;
        p += c.length;
    }
}

/// `'(?i:[sdmt]|ll|ve|re)`: its length, or 0.
std::size_t contraction(const Byte* p, const Byte* end) noexcept {
    if (end - p < 2) return 0;
    const unsigned a = p[1] | 0x20U;
    if (a == 's' || a == 'd' || a == 'm' || a == 't') return 2;
    if (end - p < 3) return 0;
    const unsigned b = p[2] | 0x20U;
    return (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ? 3 : 0;
}

/// `\s*[\r\n]|\s+(?!\S)|\s+`: up to the last newline of the run; without one, the run but for the
/// space that may join the next word.
std::size_t white_space(const Byte* begin, const Byte* end) noexcept {
    const Byte* p = begin;
    const Byte* after_newline = begin;
    for (; p != end; ++p) {
        if (kinds[*p] == Kind::newline)
            after_newline = p + 1;
        else if (kinds[*p] != Kind::space)
            break;
    }
    if (after_newline != begin) return static_cast<std::size_t>(after_newline - begin);
    if (p != end && p - begin > 1) --p;
    return static_cast<std::size_t>(p - begin);
}

} // namespace

std::size_t chunk_length(std::string_view text) noexcept {
    const auto* const begin = reinterpret_cast<const Byte*>(text.data());
    const auto* const end = begin + text.size();
    const auto length = [begin](const Byte* p) { return static_cast<std::size_t>(p - begin); };

    const Character first = character(begin, end);
    const Byte* const second = begin + first.length;
    if (first.kind == Kind::letter) return length(skip(second, end, Kind::letter));
    if (first.kind == Kind::digit) {
        return second != end && kinds[*second] == Kind::digit ? 2 : 1;
    }
    if (*begin == '\'') {
        if (const std::size_t n = contraction(begin, end)) return n;
    }
    if (first.kind != Kind::newline && second != end) {
        const Character next = character(second, end);
        if (next.kind == Kind::letter) {
            return length(skip(second + next.length, end, Kind::letter));
        }
    }
    const Byte* const mark = begin + (*begin == ' ' ? 1 : 0);
    const Byte* p = skip(mark, end, Kind::punctuation);
    if (p == mark) return white_space(begin, end);
    while (p != end && kinds[*p] == Kind::newline)
        ++p;
    return length(p);
}

} // namespace mnm
