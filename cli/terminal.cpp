// SPDX-License-Identifier: MIT
// Text on its way to the terminal.
#include "cli/terminal.h"

#include <cstdlib>

namespace mnm::cli {

std::string dim(std::string_view text) {
    const char* no_color = std::getenv("NO_COLOR");
    const bool plain = no_color != nullptr && *no_color != '\0';
    if (plain || !is_terminal(Stream::error)) return std::string(text);
    return "\x1b[2m" + std::string(text) + "\x1b[0m";
}

std::string without_controls(std::string_view text) {
    constexpr std::string_view mark = "\xEF\xBF\xBD";
    std::string shown;
    shown.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool newline_or_tab = byte == '\n' || byte == '\t';
        if ((byte < 0x20 && !newline_or_tab) || byte == 0x7F) {
            shown += mark;
        } else if (byte == 0xC2 && i + 1 < text.size() &&
                   static_cast<unsigned char>(text[i + 1]) < 0xA0) {
            shown += mark;
            ++i;
        } else {
            shown += text[i];
        }
    }
    return shown;
}

} // namespace mnm::cli
