// SPDX-License-Identifier: MIT
// mnm gguf: the model for llama.cpp and what is built on it.
#include "formats/gguf.h"
#include "cli/command.h"
#include "cli/conversion_report.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/stock_pretokenizers.h"
#include "cli/terminal.h"
#include "cli/tokenizer_source.h"
#include "engine/conversation.h"
#include "engine/convert.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace mnm::cli {
namespace {

struct ExportOptions {
    std::string input;
    std::string output;
    std::string type = "q8_0";
    std::string name;
    std::string pre = stock_pretokenizers().front();
    std::string sample;
    std::string tokenizer;
    bool no_fit = false;
    ThreadOptions threads;
    OutputOptions report;
};

struct Comparison {
    std::string pre;
    SplitDifference difference;
};

/// The chosen pre-tokenizer first, then the others.
Result<std::vector<Comparison>> compare_all(const ExportOptions& options) {
    std::string text(sample_text());
    if (!options.sample.empty()) {
        MNM_TRY(auto mapping, MappedFile::open(options.sample));
        MNM_CHECK(check_text(*mapping));
        const auto bytes = mapping->bytes();
        text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    std::vector<Comparison> comparisons;
    for (const std::string& pre : stock_pretokenizers()) {
        MNM_TRY(SplitDifference difference, compare_split(pre, text));
        comparisons.insert(pre == options.pre ? comparisons.begin() : comparisons.end(),
                           Comparison{pre, std::move(difference)});
    }
    return comparisons;
}

std::string comparison_text(const ExportOptions& options,
                            const std::vector<Comparison>& comparisons) {
    const auto& [pre, chosen] = comparisons.front();
    const std::string sample = options.sample.empty() ? "the built-in sample" : options.sample;
    std::string text;
    if (chosen.places() == 0) {
        text = fmt::format("pre-tokenizer {}: splits all {} pieces of {} as mnm does\n", pre,
                           grouped(chosen.pieces), sample);
    } else {
        text = fmt::format(
            "pre-tokenizer {}: of {} pieces of {}, {} places are split otherwise "
            "than by mnm\n"
            "  numbers of three or more digits {}, runs of line breaks {}, other {}; "
            "the first is {}\n",
            pre, grouped(chosen.pieces), sample, grouped(chosen.places()), chosen.numbers,
            chosen.line_breaks, chosen.others, json_string(chosen.first));
    }
    text += "  places with the other pre-tokenizers (--pre):";
    for (std::size_t i = 1; i < comparisons.size(); ++i)
        text += fmt::format(" {} {}", comparisons[i].pre, comparisons[i].difference.places());
    return text + "\n";
}

nlohmann::ordered_json comparison_json(const std::vector<Comparison>& comparisons) {
    nlohmann::ordered_json json;
    for (const auto& [pre, difference] : comparisons) {
        json[pre] = {{"pieces", difference.pieces},   {"places", difference.places()},
                     {"numbers", difference.numbers}, {"line_breaks", difference.line_breaks},
                     {"others", difference.others},   {"first", difference.first}};
    }
    return json;
}

Result<void> export_gguf(const ExportOptions& options) {
    MNM_TRY(ModelFile source, open_model(options.input));
    MNM_TRY(FoundTokenizer tokenizer, need_tokenizer(source, options.tokenizer));
    MNM_CHECK(keep_inputs(options.output, {options.input, tokenizer.source, options.sample}));
    source.details.tokenizer = std::move(tokenizer.bytes);
    source.details.tokenizer_hash = tokenizer.file.hash;
    if (source.details.chat_template.empty()) source.details.chat_template = native_chat_template();

    GgufOptions gguf_options;
    gguf_options.name = options.name;
    if (gguf_options.name.empty()) gguf_options.name = name_of(path_of(options.input).stem());
    gguf_options.name = valid_utf8(gguf_options.name);
    gguf_options.pre = options.pre;
    MNM_TRY(const WritePlan plan, gguf_plan(source, *find_codec(options.type), gguf_options));
    // Before anything is written: a sample that cannot be read is no reason to have half a result.
    MNM_TRY(const std::vector<Comparison> comparisons, compare_all(options));

    if (options.no_fit && options.type != "q4_0" && !options.report.quiet)
        note(fmt::format("note: --no-fit changes nothing for {}", options.type));
    ConvertOptions convert_options;
    convert_options.encode.fit = !options.no_fit;
    Parallel parallel(options.threads.count());
    auto progress = std::make_unique<Progress>("exporting", options.report.quiet);
    convert_options.progress = [&](std::uint64_t done, std::uint64_t total) {
        progress->update(done, total);
    };
    MNM_TRY(const ConvertReport written,
            convert(source, plan, *find_format("gguf"), options.output, convert_options, parallel));
    progress.reset();
    if (is_standard_output(options.output)) return {}; // a report would follow the model
    if (options.report.json) {
        auto json = conversion_json(options.output, "gguf", options.type, written);
        json["name"] = gguf_options.name;
        json["pre"] = options.pre;
        json["pretokenizers"] = comparison_json(comparisons);
        print_json(json);
    } else if (!options.report.quiet) {
        print(conversion_text(options.output, options.type, written));
        print(comparison_text(options, comparisons));
    }
    return {};
}

} // namespace

Command add_gguf(CLI::App& app) {
    auto options = std::make_shared<ExportOptions>();
    CLI::App* parser = app.add_subcommand("gguf", "Write a GGUF file for llama.cpp and Ollama");
    parser->add_option("IN", options->input, "Checkpoint, or an unquantised model")
        ->required()
        ->check(file_name());
    parser->add_option("OUT", options->output, "GGUF file to write")
        ->required()
        ->check(output_name());
    parser->add_option("--type", options->type, "Weight type of the matrices")
        ->check(one_of({"q8_0", "q4_0", "f16", "f32"}))
        ->capture_default_str();
    parser->add_flag("--no-fit", options->no_fit, "q4_0: llama.cpp's own rounding");
    parser->add_option("--name", options->name, "The model's name (default: that of IN)")
        ->type_name("NAME");
    parser
        ->add_option("--pre", options->pre,
                     "llama.cpp's pre-tokenizer; none of them splits quite as mnm does")
        ->check(one_of(stock_pretokenizers()))
        ->capture_default_str();
    parser
        ->add_option("--sample", options->sample,
                     "Text on which the pre-tokenizers are compared (default: a built-in one)")
        ->check(file_name())
        ->type_name("FILE");
    parser
        ->add_option("--tokenizer", options->tokenizer,
                     "tokenizer.bin, or a model that holds one (default: IN's own)")
        ->check(file_name())
        ->type_name("FILE");
    add_threads(*parser, options->threads);
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm gguf models/tales-chat.ckpt tales.gguf --type q4_0");
    return {parser, [options] { return export_gguf(*options); }};
}

} // namespace mnm::cli
