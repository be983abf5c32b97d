// SPDX-License-Identifier: MIT
// mnm logits: what a model says after each of the given tokens, for comparing with other tools.
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/npy_file.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/session.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

namespace mnm::cli {
namespace {

struct LogitsOptions {
    std::string model;
    std::string ids;
    std::string output;
    EngineOptions engine;
    OutputOptions report;
};

/// Digits with single commas between them; nothing for anything else.
std::optional<std::vector<TokenId>> parse_ids(std::string_view text) {
    std::vector<TokenId> ids;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
        TokenId id = 0;
        const auto [stop, problem] = std::from_chars(at, end, id);
        if (problem != std::errc{}) return std::nullopt;
        ids.push_back(id);
        if (stop == end) return ids;
        if (*stop != ',') return std::nullopt;
        at = stop + 1;
    }
}

CLI::Validator id_list() {
    return CLI::Validator(
        [](std::string& value) -> std::string {
            if (parse_ids(value)) return {};
            return fmt::format("'{}' is not a list of token ids (0 to 4294967295) such as 1,2,3",
                               value);
        },
        "");
}

Result<void> logits(const LogitsOptions& options) {
    const std::vector<TokenId> ids = *parse_ids(options.ids);
    MNM_TRY(const Model model, Model::open(options.model));
    MNM_CHECK(verify_tensors(model.file()));
    const auto tokenizer = path_of(options.model).replace_filename("tokenizer.bin");
    MNM_CHECK(keep_inputs(options.output, {options.model, name_of(tokenizer)}));
    const std::uint64_t vocab = model.config().vocab;
    Parallel parallel(options.engine.count());
    MNM_TRY(Session session, Session::create(model, options.engine.kernels(), parallel,
                                             options.engine.cache_type()));

    MNM_TRY(NpyFile file, NpyFile::create(options.output, ids.size(), vocab));
    Result<void> written;
    MNM_CHECK(session.forward_all(ids, [&](std::size_t, std::span<const float> row) {
        if (written) written = file.append(row);
    }));
    MNM_CHECK(written);
    MNM_CHECK(model.file().mapping->check_unchanged());
    MNM_CHECK(file.commit());
    if (is_standard_output(options.output)) return {}; // a report would follow the numbers

    if (options.report.json) {
        print_json({{"file", options.output}, {"rows", ids.size()}, {"cols", vocab}});
    } else if (!options.report.quiet) {
        print(fmt::format("{}: float32 [{}][{}]\n", options.output, ids.size(), vocab));
    }
    return {};
}

} // namespace

Command add_logits(CLI::App& app) {
    auto options = std::make_shared<LogitsOptions>();
    CLI::App* parser = app.add_subcommand("logits", "Write the logits after each token as .npy");
    parser->add_option("MODEL", options->model, "Model file or checkpoint")
        ->required()
        ->check(file_name());
    parser->add_option("--ids", options->ids, "Token ids, separated by commas")
        ->required()
        ->check(id_list())
        ->type_name("1,2,3");
    parser->add_option("--out", options->output, "Where to write float32 [ids][vocabulary]")
        ->required()
        ->check(output_name())
        ->type_name("FILE.npy");
    add_engine(*parser, options->engine);
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm logits tales.mnm --ids 2032,2033,1665 --out logits.npy");
    return {parser, [options] { return logits(*options); }};
}

} // namespace mnm::cli
