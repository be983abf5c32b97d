// SPDX-License-Identifier: MIT
// Lines from a person or a pipe. The only file behind which libedit stands.
#pragma once

#include <memory>
#include <string>

namespace mnm::cli {

/// On a terminal, with libedit: editing, history, and a pasted text of several lines as one.
/// Elsewhere plain lines, without a byte order mark and without carriage returns at their ends.
class LineEditor {
  public:
    enum class Event { line, end, interrupt, failure };

    /// What edits lines on a terminal: "libedit", or "none".
    static const char* library();

    LineEditor();
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    /// True when a person sits at both ends.
    bool interactive() const { return interactive_; }
    /// Waits for a line; `prompt` is shown to a person only. Event::interrupt is Ctrl+C; `line`
    /// then holds what had been typed. Event::failure: the input cannot be read, `line` says why.
    Event read(const std::string& prompt, std::string& line);

  private:
    Event read_plain(const std::string& prompt, std::string& line);

    struct Editor;
    bool interactive_;
    bool first_ = true;
    std::unique_ptr<Editor> editor_; ///< null where lines are read plainly
};

} // namespace mnm::cli
