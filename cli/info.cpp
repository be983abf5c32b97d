// SPDX-License-Identifier: MIT
// mnm info: what a file holds.
#include "cli/command.h"
#include "cli/file_description.h"
#include "cli/options.h"
#include "cli/report.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace mnm::cli {
namespace {

struct InfoOptions {
    std::string file;
    bool verify = false;
    OutputOptions report;
};

Result<void> info(const InfoOptions& options) {
    MNM_TRY(const FileDescription description, describe_file(options.file, options.verify));
    if (options.report.json) {
        print_json(description.json);
    } else {
        print(description.text);
    }
    return {};
}

} // namespace

Command add_info(CLI::App& app) {
    auto options = std::make_shared<InfoOptions>();
    CLI::App* parser = app.add_subcommand("info", "Show what a file holds");
    parser
        ->add_option("FILE", options->file,
                     "Checkpoint, model file, GGUF, token stream or tokenizer.bin")
        ->required()
        ->check(file_name());
    parser->add_flag("--verify", options->verify, "Compare every tensor with its checksum");
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm info tales.mnm");
    return {parser, [options] { return info(*options); }};
}

} // namespace mnm::cli
