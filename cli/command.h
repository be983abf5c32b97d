// SPDX-License-Identifier: MIT
// The subcommands: each file registers one, and main runs the one that was named.
#pragma once

#include "formats/result.h"

#include <functional>

namespace CLI {
class App;
}

namespace mnm::cli {

/// A parser with its options registered, and what to do once they are parsed.
struct Command {
    CLI::App* parser;
    std::function<Result<void>()> run;
};

Command add_quantize(CLI::App& app);
Command add_chat(CLI::App& app);
Command add_eval(CLI::App& app);
Command add_gguf(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_info(CLI::App& app);
Command add_tokenize(CLI::App& app);
Command add_logits(CLI::App& app);
Command add_completion(CLI::App& app);

} // namespace mnm::cli
