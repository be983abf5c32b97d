// SPDX-License-Identifier: MIT
// mnm quantize: a trainer's checkpoint becomes a model file.
#include "cli/command.h"
#include "cli/conversion_report.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/tokenizer_source.h"
#include "cli/version.h"
#include "engine/conversation.h"
#include "engine/convert.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <optional>

namespace mnm::cli {
namespace {

struct QuantizeOptions {
    std::string input;
    std::string output;
    std::string type = "q8";
    std::string format = "mnm2";
    std::string tokenizer;
    std::optional<double> rope_base;
    bool no_fit = false;
    ThreadOptions threads;
    OutputOptions report;
};

void set_metadata(ModelDetails& details, const std::string& key, const std::string& value) {
    for (auto& [present, text] : details.metadata) {
        if (present != key) continue;
        text = value;
        return;
    }
    details.metadata.emplace_back(key, value);
}

/// What goes beside the weights: everything that a chat needs.
ModelDetails complete(const ModelFile& source, const QuantizeOptions& options,
                      const std::optional<FoundTokenizer>& tokenizer) {
    ModelDetails details = source.details;
    if (options.rope_base) details.config.rope_base = *options.rope_base;
    if (tokenizer) {
        details.tokenizer = tokenizer->bytes;
        details.tokenizer_hash = tokenizer->file.hash;
        if (details.chat_template.empty()) details.chat_template = native_chat_template();
    }
    if (!details.sampling) details.sampling = SamplingDefaults{};
    set_metadata(details, "mnm.version", version);
    set_metadata(details, "mnm.source", valid_utf8(name_of(path_of(options.input).filename())));
    return details;
}

Result<void> quantize(const QuantizeOptions& options) {
    MNM_TRY(ModelFile source, open_model(options.input));
    MNM_TRY(auto tokenizer, find_tokenizer(source, options.tokenizer));
    MNM_CHECK(keep_inputs(options.output, {options.input, tokenizer ? tokenizer->source : ""}));
    const Codec* stored = source.uniform_codec();
    if (stored != nullptr && stored->name == options.type && options.type != "f32" &&
        !options.report.quiet)
        note(fmt::format("note: the input is {} already; its weights are copied as they are",
                         stored->name));
    const double base = source.details.config.rope_base;
    if (options.rope_base && *options.rope_base != base && !options.report.quiet)
        note(fmt::format("note: RoPE base {:g} instead of the input's {:g}", *options.rope_base,
                         base));
    if (options.no_fit && options.type != "q4" && !options.report.quiet)
        note(fmt::format("note: --no-fit changes nothing for {}", options.type));
    if (!tokenizer && options.format == "mnm2" && !options.report.quiet)
        note("note: no tokenizer found; chatting with this file will need --tokenizer FILE");

    const WritePlan plan{complete(source, options, tokenizer),
                         standard_tensors(source.details.config, *find_codec(options.type))};
    ConvertOptions convert_options;
    convert_options.encode.fit = !options.no_fit;
    Parallel parallel(options.threads.count());
    auto progress = std::make_unique<Progress>("quantizing", options.report.quiet);
    convert_options.progress = [&](std::uint64_t done, std::uint64_t total) {
        progress->update(done, total);
    };
    MNM_TRY(const ConvertReport written, convert(source, plan, *find_format(options.format),
                                                 options.output, convert_options, parallel));
    progress.reset();
    if (is_standard_output(options.output)) return {}; // a report would follow the model
    if (options.report.json) {
        print_json(conversion_json(options.output, options.format, options.type, written));
    } else if (!options.report.quiet) {
        print(conversion_text(options.output, options.type, written));
    }
    return {};
}

} // namespace

Command add_quantize(CLI::App& app) {
    auto options = std::make_shared<QuantizeOptions>();
    CLI::App* parser = app.add_subcommand("quantize", "Make a model file from a checkpoint");
    parser->add_option("IN", options->input, "Checkpoint, or an unquantised model")
        ->required()
        ->check(file_name());
    parser->add_option("OUT", options->output, "Model file to write")
        ->required()
        ->check(output_name());
    parser->add_option("--type", options->type, "Weight type of the matrices")
        ->check(one_of({"q8", "q4", "f32"}))
        ->capture_default_str();
    parser->add_flag("--no-fit", options->no_fit, "q4: scale = max/7 instead of a fitted one");
    parser->add_option("--format", options->format, "File format")
        ->check(one_of({"mnm2", "mnm1"}))
        ->capture_default_str();
    parser
        ->add_option("--tokenizer", options->tokenizer,
                     "tokenizer.bin, or a model that holds one (default: the one beside IN)")
        ->check(file_name())
        ->type_name("FILE");
    parser
        ->add_option("--rope-base", options->rope_base,
                     "RoPE base, where the checkpoint does not say (default 10000)")
        ->check(number_between(1e-3, 1e12))
        ->type_name("X");
    add_threads(*parser, options->threads);
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm quantize models/tales-chat.ckpt tales.mnm --type q4");
    return {parser, [options] { return quantize(*options); }};
}

} // namespace mnm::cli
