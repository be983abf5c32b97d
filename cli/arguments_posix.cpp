// SPDX-License-Identifier: MIT
// Arguments as POSIX systems give them: bytes.
#include "cli/arguments.h"

namespace mnm::cli {

std::vector<std::string> arguments(int argc, char** argv) {
    return {argv, argv + argc};
}

} // namespace mnm::cli
