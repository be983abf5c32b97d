// SPDX-License-Identifier: MIT
// The terminal of POSIX systems.
#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace mnm::cli {
namespace {

termios remembered;
volatile std::sig_atomic_t is_remembered = 0;
volatile std::sig_atomic_t pastes_marked = 0;

void write_all(std::string_view text) noexcept {
    // Nothing can be done about a terminal that takes no bytes.
    [[maybe_unused]] const auto written = write(STDOUT_FILENO, text.data(), text.size());
}

} // namespace

void prepare_streams() {
    for (int stream = 0; stream <= 2; ++stream) {
        if (fcntl(stream, F_GETFD) != -1) continue;
        // The wrong way round, so that reading or writing still fails. open() takes the lowest
        // number, which is this one.
        [[maybe_unused]] const int opened =
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

bool is_standard_output(const std::string& path) {
    struct stat named {};
    struct stat output {};
    return stat(path.c_str(), &named) == 0 && fstat(STDOUT_FILENO, &output) == 0 &&
           named.st_dev == output.st_dev && named.st_ino == output.st_ino;
}

bool is_terminal(Stream stream) {
    return isatty(static_cast<int>(stream)) != 0;
}

unsigned terminal_width() {
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

int read_byte() {
    const int byte = std::getc(stdin);
    if (byte != EOF) return byte;
    if (!std::ferror(stdin)) return input_end;
    if (errno != EINTR) return input_failed;
    std::clearerr(stdin);
    return input_interrupted;
}

bool reader_left(int reason) {
    return reason == EPIPE;
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

} // namespace mnm::cli
