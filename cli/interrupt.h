// SPDX-License-Identifier: MIT
// Ctrl+C and the end that the system asks for.
#pragma once

namespace mnm::cli {

/// SIGINT and SIGTERM remove unfinished output files, restore the terminal and end the program with
/// status 130 or 143. A closed pipe becomes a write error instead of a signal.
void handle_signals();

/// While one of these lives, SIGINT only raises a flag.
class InterruptFlag {
  public:
    InterruptFlag();
    ~InterruptFlag();
    InterruptFlag(const InterruptFlag&) = delete;
    InterruptFlag& operator=(const InterruptFlag&) = delete;

    bool raised() const;
    void clear();
};

} // namespace mnm::cli
