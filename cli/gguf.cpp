// SPDX-License-Identifier: MIT
// mnm gguf: the model for llama.cpp and what is built on it.
#include "cli/command.h"
namespace mnm::cli {
Command add_gguf(CLI::App &app) {
    return {app.add_subcommand("gguf", ""), [] { return Result<void>(); }};
}
} // namespace mnm::cli
