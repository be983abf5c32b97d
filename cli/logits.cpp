// SPDX-License-Identifier: MIT
// mnm logits: what a model says after each of the given tokens, for comparing with other tools.
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/npy_file.h"
#include "cli/options.h"
#include "cli/report.h"
#include "engine/session.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace mnm::cli {
namespace {

struct LogitsOptions {
    std::string model;
    std::vector<TokenId> ids;
    std::string output;
    EngineOptions engine;
    OutputOptions report;
};

Result<void> logits(const LogitsOptions& options) {
    MNM_TRY(const Model model, Model::open(options.model));
    const auto tokenizer = std::filesystem::path(options.model).replace_filename("tokenizer.bin");
    MNM_CHECK(keep_inputs(options.output, {options.model, tokenizer.string()}));
    const std::uint64_t vocab = model.config().vocab;
    Parallel parallel(options.engine.count());
    MNM_TRY(Session session, Session::create(model, options.engine.kernels(), parallel));

    MNM_TRY(NpyFile file, NpyFile::create(options.output, options.ids.size(), vocab));
    Result<void> written;
    MNM_CHECK(session.forward_all(options.ids, [&](std::size_t, std::span<const float> row) {
        if (written) written = file.append(row);
    }));
    MNM_CHECK(written);
    MNM_CHECK(file.commit());

    if (options.report.json) {
        print_json({{"file", options.output}, {"rows", options.ids.size()}, {"cols", vocab}});
    } else if (!options.report.quiet) {
        print(fmt::format("{}: float32 [{}][{}]\n", options.output, options.ids.size(), vocab));
    }
    return {};
}

} // namespace

Command add_logits(CLI::App& app) {
    auto options = std::make_shared<LogitsOptions>();
    CLI::App* parser = app.add_subcommand("logits", "Write the logits after each token as .npy");
    parser->add_option("MODEL", options->model, "Model file or checkpoint")->required();
    parser->add_option("--ids", options->ids, "Token ids, separated by commas")
        ->required()
        ->delimiter(',')
        ->check(whole_number())
        ->type_name("1,2,3");
    parser->add_option("--out", options->output, "Where to write float32 [ids][vocabulary]")
        ->required()
        ->type_name("FILE.npy");
    add_engine(*parser, options->engine);
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm logits tales.mnm --ids 2032,2033,1665 --out logits.npy");
    return {parser, [options] { return logits(*options); }};
}

} // namespace mnm::cli
