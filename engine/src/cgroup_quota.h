// SPDX-License-Identifier: MIT
// The CPU quota of this process's control groups.
#pragma once

#include <optional>
#include <string>

namespace mnm {

/// The tightest quota of this process's own group and the groups above it, version 1 or 2, in whole
/// processors, rounded up; nothing when none is set. `root` is prepended to paths.
std::optional<unsigned> cgroup_quota(const std::string& root);

} // namespace mnm
