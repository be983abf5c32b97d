// SPDX-License-Identifier: MIT
// Arguments from the wide command line.
#include "cli/arguments.h"
#include "cli/utf8_windows.h"

#include <shellapi.h>

namespace mnm::cli {

std::vector<std::string> arguments(int argc, char** argv) {
    int count = 0;
    wchar_t** const wide = CommandLineToArgvW(GetCommandLineW(), &count);
    if (wide == nullptr) return {argv, argv + argc};
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i)
        all.push_back(utf8(wide[i]));
    LocalFree(wide);
    return all;
}

} // namespace mnm::cli
