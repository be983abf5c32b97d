// SPDX-License-Identifier: MIT
// A chat from its first line to its last: turns, commands, interrupts.
#pragma once

#include "cli/assistant.h"
#include "cli/line_editor.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mnm::cli {

class ChatLoop {
  public:
    /// `json`: each turn gives one object on one line of standard output, a refused one too.
    ChatLoop(Assistant& assistant, std::uint64_t seed, bool quiet, bool json)
        : assistant_(&assistant), seed_(seed), quiet_(quiet), json_(json) {}

    /// Until /quit or the end of the input. Errors: a line of a piped chat was refused, the input
    /// cannot be read.
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
    /// True when the person wants to leave: Ctrl+C twice within two seconds, nothing in between.
    bool leaves_on_interrupt(bool typed_something);
    void say(std::string_view text) const;

    Assistant* assistant_;
    std::uint64_t seed_;
    bool quiet_;
    bool json_;
    bool finished_ = false;
    std::size_t spoken_tokens_ = 0;
    std::size_t refused_ = 0; ///< lines that a script would want to know of
    LineEditor editor_;
    std::optional<std::chrono::steady_clock::time_point> last_interrupt_;
};

/// A reply as scripts get it.
nlohmann::ordered_json reply_json(const Reply& reply, std::uint64_t seed);

/// What is to be said about a reply on standard error, one line; empty when there is nothing.
std::string reply_remark(const Reply& reply);

} // namespace mnm::cli
