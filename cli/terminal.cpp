// SPDX-License-Identifier: MIT
// What is known about the terminal.
#include "cli/terminal.h"

#include <csignal>
#include <cstdlib>

#ifdef _WIN32
#include <io.h>
#else
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#endif

namespace mnm::cli {

#ifdef _WIN32
bool is_terminal(Stream stream) {
    return _isatty(static_cast<int>(stream)) != 0;
}
unsigned terminal_width() {
    return 80;
}
void mark_pastes(bool) {}
void remember_terminal() {}
void restore_terminal() noexcept {}
#else
namespace {
termios remembered;
volatile std::sig_atomic_t is_remembered = 0;
volatile std::sig_atomic_t pastes_marked = 0;

void write_all(std::string_view text) noexcept {
    // Nothing can be done about a terminal that takes no bytes.
    [[maybe_unused]] const auto written = write(STDOUT_FILENO, text.data(), text.size());
}
} // namespace

bool is_terminal(Stream stream) {
    return isatty(static_cast<int>(stream)) != 0;
}

unsigned terminal_width() {
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

void mark_pastes(bool marked) {
    write_all(marked ? "\x1b[?2004h" : "\x1b[?2004l");
    pastes_marked = marked ? 1 : 0;
}

void remember_terminal() {
    is_remembered = tcgetattr(STDIN_FILENO, &remembered) == 0 ? 1 : 0;
}

void restore_terminal() noexcept {
    if (pastes_marked != 0) write_all("\x1b[?2004l");
    if (is_remembered != 0) tcsetattr(STDIN_FILENO, TCSANOW, &remembered);
}
#endif

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
