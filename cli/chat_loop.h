// SPDX-License-Identifier: MIT
// A chat from its first line to its last: turns, commands, interrupts.
#pragma once

#include "cli/assistant.h"
#include "cli/line_editor.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace mnm::cli {

class ChatLoop {
  public:
    ChatLoop(Assistant& assistant, std::uint64_t seed, bool quiet)
        : assistant_(&assistant), seed_(seed), quiet_(quiet) {}

    /// Until /quit or the end of the input. Errors: a turn of a piped chat was refused.
    Result<void> run();

  private:
    void run_command(std::string_view line);
    void show_help() const;
    void show_stats() const;
    void set_system(std::string_view text);
    void set_temperature(std::string_view text);
    /// Sends the text, streams the reply to standard output and says how it went.
    Result<void> take_turn(const std::string& text, const InterruptFlag* interrupt);
    /// One turn's text: a line, and those that follow while each ends in a backslash.
    LineEditor::Event read_turn(std::string& text);
    /// True when the person wants to leave: Ctrl+C twice within two seconds.
    bool leaves_on_interrupt();
    void say(std::string_view text) const;

    Assistant* assistant_;
    std::uint64_t seed_;
    bool quiet_;
    bool finished_ = false;
    std::size_t spoken_tokens_ = 0;
    LineEditor editor_;
    std::chrono::steady_clock::time_point last_interrupt_{};
};

/// What is to be said about a reply on standard error, one line; empty when there is nothing.
std::string reply_remark(const Reply& reply);

} // namespace mnm::cli
