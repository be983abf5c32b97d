// SPDX-License-Identifier: MIT
// A progress bar on standard error, where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace mnm::cli {

/// Draws at most ten times a second and takes the bar away when destroyed. Silent when `quiet` or
/// when standard error is no terminal.
class Progress {
  public:
    Progress(std::string label, bool quiet);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(std::uint64_t done, std::uint64_t total);

  private:
    std::string label_;
    bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point next_;
};

} // namespace mnm::cli
