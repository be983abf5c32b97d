// SPDX-License-Identifier: MIT
// The Windows console: UTF-8 out, wide characters in, and streams that keep every byte.
#include "cli/terminal.h"

#include "cli/utf8_windows.h"

#include <fcntl.h>
#include <io.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace mnm::cli {
namespace {

UINT code_page_before = 0;

/// Escape sequences (faint text, the progress bar) work only where this mode can be set.
void interpret_escapes(DWORD stream) {
    const HANDLE console = GetStdHandle(stream);
    DWORD mode = 0;
    constexpr DWORD virtual_terminal = 0x0004; // ENABLE_VIRTUAL_TERMINAL_PROCESSING
    if (GetConsoleMode(console, &mode)) SetConsoleMode(console, mode | virtual_terminal);
}

HANDLE input_console() {
    const HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
    DWORD mode = 0;
    return GetConsoleMode(input, &mode) ? input : nullptr;
}

/// What was typed and not yet read, as UTF-8: in code page 65001 ReadFile loses what is not ASCII.
struct TypedText {
    std::string bytes;
    std::size_t next = 0;
};
TypedText typed;

/// Waits for a line; 0, input_end or input_interrupted.
int read_console(HANDLE console) {
    wchar_t text[512];
    DWORD count = 0;
    SetLastError(0);
    if (!ReadConsoleW(console, text, 512, &count, nullptr)) return input_end;
    if (count == 0)
        return GetLastError() == ERROR_OPERATION_ABORTED ? input_interrupted : input_end;
    if (text[0] == 0x1A) return input_end; // Ctrl+Z
    // A line may be cut within a surrogate pair: its second half is read at once.
    std::wstring units(text, count);
    const bool cut = units.back() >= 0xD800 && units.back() < 0xDC00;
    if (cut && ReadConsoleW(console, text, 1, &count, nullptr) && count == 1) units += text[0];
    typed = {utf8(units), 0};
    return 0;
}

} // namespace

void prepare_streams() {
    for (FILE* stream : {stdin, stdout, stderr})
        _setmode(_fileno(stream), _O_BINARY);
    code_page_before = GetConsoleOutputCP();
    if (code_page_before == 0 || !SetConsoleOutputCP(CP_UTF8)) return;
    std::atexit([] { SetConsoleOutputCP(code_page_before); });
    interpret_escapes(STD_OUTPUT_HANDLE);
    interpret_escapes(STD_ERROR_HANDLE);
}

bool is_standard_output(const std::string&) {
    return false;
}

bool is_terminal(Stream stream) {
    return _isatty(static_cast<int>(stream)) != 0;
}

unsigned terminal_width() {
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_ERROR_HANDLE), &info)) return 80;
    const int width = info.srWindow.Right - info.srWindow.Left + 1;
    return width > 0 ? static_cast<unsigned>(width) : 80;
}

int read_byte() {
    static const HANDLE console = input_console(); // asking costs far more than reading a byte
    if (console == nullptr) {
        const int byte = std::getc(stdin);
        return byte == EOF ? input_end : byte;
    }
    while (typed.next == typed.bytes.size()) {
        if (const int problem = read_console(console); problem != 0) return problem;
    }
    return static_cast<unsigned char>(typed.bytes[typed.next++]);
}

bool reader_left(int reason) {
    // The C library has no errno of its own for the system's two ways to say it.
    const bool gone = _doserrno == ERROR_NO_DATA || _doserrno == ERROR_PIPE_NOT_CONNECTED;
    return reason == EPIPE || (reason == EINVAL && gone);
}

void mark_pastes(bool) {}
void remember_terminal() {}
void restore_terminal() noexcept {}

} // namespace mnm::cli
