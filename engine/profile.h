// SPDX-License-Identifier: MIT
// Where the time of forward passes goes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace mnm {

/// Parts of a pass. Norms and the quantising of activations belong to the product they precede, the
/// placing of keys and values to qkv.
enum class Phase { qkv, attention, output, gate_up, down, head, other };

/// Seconds of each phase, summed over passes; one thread's clock, the others wait or work with it.
class Profile {
  public:
    static constexpr std::size_t phases = 7;
    static constexpr std::array<const char*, phases> names = {
        "qkv", "attention", "output", "gate_up", "down", "head", "other"};

    /// The time since the last lap (or start) was spent in `phase`.
    void lap(Phase phase) {
        const auto now = Clock::now();
        seconds_[static_cast<std::size_t>(phase)] +=
            std::chrono::duration<double>(now - last_).count();
        last_ = now;
    }
    void start() { last_ = Clock::now(); }
    const std::array<double, phases>& seconds() const { return seconds_; }

  private:
    using Clock = std::chrono::steady_clock;
    std::array<double, phases> seconds_{};
    Clock::time_point last_ = Clock::now();
};

} // namespace mnm
