// SPDX-License-Identifier: MIT
// The levels of kernels in this program and the choice among them.
#pragma once

#include "kernels/table.h"

#include <cstddef>
#include <string>
#include <vector>

namespace mnm::kernels {

/// Scratch bytes a matmul needs for matrices of this many columns.
std::size_t matmul_scratch(std::size_t cols) noexcept;

/// Names of all levels compiled into this program, slowest first.
std::vector<std::string> built_levels();
/// Those of them that this processor can run.
std::vector<std::string> usable_levels();
/// The table of a level: what it does not improve comes from the levels below it. Null when the
/// level is not built or not usable here. The table lives as long as the program.
const Kernels* find(const std::string& level);
/// The fastest usable level.
const Kernels& best();

} // namespace mnm::kernels
