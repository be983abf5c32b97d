// SPDX-License-Identifier: MIT
// The three standard streams and the terminal behind them, and keeping text from driving it.
#pragma once

#include <string>
#include <string_view>

namespace mnm::cli {

enum class Stream { input, output, error };

/// Once, before anything is opened, read or written. Windows is told that text is UTF-8, and that
/// bytes are to pass unchanged. On POSIX systems a standard stream that the parent closed gives
/// errors, as before, but its number is taken: no file opened later can receive what is printed.
void prepare_streams();

bool is_terminal(Stream stream);
/// Columns of the terminal behind standard error; 80 when there is none.
unsigned terminal_width();

inline constexpr int input_end = -1;
inline constexpr int input_interrupted = -2;
inline constexpr int input_failed = -3; ///< errno says why
/// The next byte of standard input (UTF-8 when a person types), or one of the above.
int read_byte();

/// Whether a write to standard output failed with `reason` (an errno) since nobody reads it any
/// more.
bool reader_left(int reason);

/// Whether `path` (as /dev/stdout, or the name that the output was redirected to) is where standard
/// output goes: a report printed there would follow the data. Never, on Windows.
bool is_standard_output(const std::string& path);

/// Faint, when standard error is a terminal and NO_COLOR is not set; else as it is.
std::string dim(std::string_view text);

/// Control characters (C0 but for newline and tab, DEL, C1) as U+FFFD: a model or a file name must
/// not be able to move the cursor or to retitle the window.
std::string without_controls(std::string_view text);

/// Asks the terminal to mark pasted text (ESC [ 200 ~ ... ESC [ 201 ~), or to stop doing so.
void mark_pastes(bool marked);
/// Keeps the terminal's settings, for restore_terminal() in a signal handler.
void remember_terminal();
/// Async-signal-safe; does nothing when nothing was remembered.
void restore_terminal() noexcept;

} // namespace mnm::cli
