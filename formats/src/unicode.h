// SPDX-License-Identifier: MIT
// UTF-8, in which every path and text of the program is kept, and UTF-16, which Windows wants.
#pragma once

#include "formats/src/bytes.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mnm {

/// One code point off the front of `text` (not empty), or U+FFFD and one byte for what is no UTF-8.
/// `valid` is cleared then.
inline char32_t next_code_point(std::string_view& text, bool& valid) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    char32_t point = length == 1 ? lead : lead & (0x7fu >> length);
    bool good = (lead < 0x80 || (lead >= 0xc2 && lead <= 0xf4)) && text.size() >= length;
    for (std::size_t i = 1; good && i < length; ++i) {
        good = (byte(i) & 0xc0) == 0x80;
        point = point << 6 | (byte(i) & 0x3fu);
    }
    if (length == 3) good = good && point >= 0x800 && (point < 0xd800 || point > 0xdfff);
    if (length == 4) good = good && point >= 0x10000 && point <= 0x10ffff;
    text.remove_prefix(good ? length : 1);
    valid = valid && good;
    return good ? point : U'\ufffd';
}

inline bool valid_utf8(std::string_view text) {
    bool valid = true;
    while (!text.empty() && valid)
        next_code_point(text, valid);
    return valid;
}

inline void append_utf8(std::string& out, char32_t point) {
    const auto put = [&](char32_t bits) { out.push_back(static_cast<char>(bits)); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xc0 | point >> 6);
        put(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        put(0xe0 | point >> 12);
        put(0x80 | (point >> 6 & 0x3f));
        put(0x80 | (point & 0x3f));
    } else {
        put(0xf0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3f));
        put(0x80 | (point >> 6 & 0x3f));
        put(0x80 | (point & 0x3f));
    }
}

/// For a message of one line: at most 64 bytes of a name from a file, without control characters.
inline std::string printable(std::string_view text) {
    std::string out;
    bool valid = true;
    for (std::string_view rest = text.substr(0, 64); !rest.empty();) {
        const char32_t point = next_code_point(rest, valid);
        append_utf8(out, point < 0x20 || (point >= 0x7f && point < 0xa0) ? U'?' : point);
    }
    return text.size() > 64 ? out + "..." : out;
}

inline std::u16string to_utf16(std::string_view text) {
    std::u16string out;
    bool valid = true;
    while (!text.empty()) {
        const char32_t point = next_code_point(text, valid);
        if (point < 0x10000) {
            out.push_back(static_cast<char16_t>(point));
        } else {
            out.push_back(static_cast<char16_t>(0xd800 + ((point - 0x10000) >> 10)));
            out.push_back(static_cast<char16_t>(0xdc00 + ((point - 0x10000) & 0x3ff)));
        }
    }
    return out;
}

inline std::string to_utf8(std::u16string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char32_t unit = text[i];
        const bool pair = unit >= 0xd800 && unit < 0xdc00 && i + 1 < text.size() &&
                          text[i + 1] >= 0xdc00 && text[i + 1] < 0xe000;
        if (pair)
            append_utf8(out, 0x10000 + ((unit - 0xd800) << 10) + (text[++i] - 0xdc00u));
        else
            append_utf8(out, unit >= 0xd800 && unit < 0xe000 ? U'\ufffd' : unit);
    }
    return out;
}

/// The path for std::filesystem, which would take a narrow string in the system's code page.
inline std::filesystem::path to_path(std::string_view utf8) {
#ifdef _WIN32
    const std::u16string wide = to_utf16(utf8);
    return std::filesystem::path(std::wstring(wide.begin(), wide.end()));
#else
    return std::filesystem::path(utf8);
#endif
}

inline std::string from_path(const std::filesystem::path& path) {
#ifdef _WIN32
    const std::wstring& wide = path.native();
    return to_utf8(std::u16string(wide.begin(), wide.end()));
#else
    return path.native();
#endif
}

} // namespace mnm
