// SPDX-License-Identifier: MIT
// Names and error texts for the wide Windows API.
#pragma once

#include "formats/src/unicode.h"

#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include <string>
#include <string_view>

namespace mnm {

/// Absolute, and in the long form where it would pass the old limit of 260 characters.
inline std::wstring wide_path(std::string_view utf8) {
    const std::wstring given = to_path(utf8).native();
    const DWORD size = GetFullPathNameW(given.c_str(), 0, nullptr, nullptr);
    if (size == 0 || size < 240 || given.starts_with(L"\\\\?\\")) return given;
    std::wstring full(size, L'\0');
    full.resize(GetFullPathNameW(given.c_str(), size, full.data(), nullptr));
    if (full.starts_with(L"\\\\.\\")) return full;
    if (full.starts_with(L"\\\\")) return L"\\\\?\\UNC\\" + full.substr(2);
    return L"\\\\?\\" + full;
}

inline std::string windows_error(DWORD code = GetLastError()) {
    wchar_t text[512];
    DWORD size = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr,
                                code, 0, text, 512, nullptr);
    while (size > 0 && (text[size - 1] <= L' ' || text[size - 1] == L'.'))
        --size;
    if (size == 0) return "system error " + std::to_string(code);
    return to_utf8(std::u16string(text, text + size));
}

} // namespace mnm
