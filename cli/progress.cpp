// SPDX-License-Identifier: MIT
// A progress bar on standard error.
#include "cli/progress.h"

#include "cli/terminal.h"

#include <algorithm>
#include <cstdio>

namespace mnm::cli {

Progress::Progress(std::string label, bool quiet)
    : label_(std::move(label)), shown_(!quiet && is_terminal(Stream::error)),
      next_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || total == 0 || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    drawn_ = true;

    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const std::size_t fixed = label_.size() + 8; // " [] 100%" without the bar
    const std::size_t width = terminal_width();
    std::string line = label_;
    if (width > fixed + 4) {
        const std::size_t cells = std::min<std::size_t>(40, width - fixed - 1);
        const auto full = static_cast<std::size_t>(share * static_cast<double>(cells));
        line += " [" + std::string(full, '#') + std::string(cells - full, ' ') + "]";
    } else {
        line.resize(std::min(line.size(), width > 6 ? width - 6 : 0));
    }
    std::fprintf(stderr, "\r%s %3d%%", line.c_str(), static_cast<int>(share * 100.0));
    std::fflush(stderr);
}

} // namespace mnm::cli
