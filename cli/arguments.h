// SPDX-License-Identifier: MIT
// What was typed on the command line.
#pragma once

#include <string>
#include <vector>

namespace mnm::cli {

/// The program's name and its arguments, in UTF-8 (on POSIX systems: as given). Windows hands
/// main() a text in the system's code page, with letters lost and wildcards expanded; this asks for
/// the whole line.
std::vector<std::string> arguments(int argc, char** argv);

} // namespace mnm::cli
