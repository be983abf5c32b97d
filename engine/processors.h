// SPDX-License-Identifier: MIT
// How many threads this process may really use.
#pragma once

#include <string>

namespace mnm {

struct Processors {
    unsigned count;     ///< at least 1
    std::string reason; ///< "2 processors (affinity)", "1 processor (cgroup quota)"
};

/// The processors of the affinity mask, lowered to the cgroup CPU quota (v1 or v2, rounded up). On
/// Linux `root` is prepended to /proc and /sys paths, so that recorded systems can be tested.
Processors usable_processors(const std::string& root = "");

} // namespace mnm
