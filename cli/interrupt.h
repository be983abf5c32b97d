// SPDX-License-Identifier: MIT
// Ctrl+C, the end that the system asks for, and what else comes from outside at any moment.
#pragma once

namespace mnm::cli {

/// SIGINT, SIGTERM and SIGHUP remove unfinished output files, restore the terminal and end the
/// program with status 130, 143 or 129. A closed pipe and a file grown too large become write
/// errors instead of signals; a mapped file that another program cut short (SIGBUS) becomes an
/// error message that names it, and status 1.
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
