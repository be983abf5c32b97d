// SPDX-License-Identifier: MIT
// mnm eval: how well a model predicts a text, and how far it is from another one.
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/study.h"
#include "cli/tokenizer_source.h"
#include "engine/evaluate.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace mnm::cli {
namespace {

struct EvalOptions {
    std::string model;
    std::string data;
    std::string reference;
    std::string tokenizer;
    std::optional<std::uint64_t> rows;
    StudyFlags study;
    EngineOptions engine;
    OutputOptions report;
};

Result<std::vector<EvaluationRow>> read_rows(const EvalOptions& options, const Model& model,
                                             const Tokenizer* tokenizer) {
    MNM_TRY(auto mapping, MappedFile::open(options.data));
    if (TokenStream::probe(mapping->bytes())) {
        MNM_TRY(const TokenStream stream, TokenStream::open(options.data));
        const std::uint64_t stored = model.file().details.tokenizer_hash;
        const std::uint64_t hash = stored == 0 && tokenizer ? tokenizer->hash() : stored;
        return evaluation_rows(stream, model.config(), hash, options.rows);
    }
    if (tokenizer == nullptr) {
        MNM_TRY(auto missing, need_tokenizer(model.file(), options.tokenizer));
    }
    MNM_CHECK(check_text(*mapping));
    const auto bytes = mapping->bytes();
    std::vector<TokenId> tokens = {tokenizer->bos()};
    tokenizer->encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, tokens);
    return evaluation_rows(tokens, model.config(), options.rows);
}

/// Six decimals, and three digits of what those cannot show: the cost of an f16 cache is 1e-7.
std::string bits(double value) {
    return value < 1e-4 && value > 0 ? fmt::format("{:.2e}", value) : fmt::format("{:.6f}", value);
}

std::string evaluation_text(const Evaluation& result, std::size_t rows, std::uint64_t window) {
    std::string text = fmt::format("loss            {:.6f} nats\n"
                                   "perplexity      {:.5f}\n",
                                   result.loss_nats, result.perplexity);
    if (result.target_bytes != 0)
        text += fmt::format("bits per byte   {:.6f}\n", result.bits_per_byte);
    text += fmt::format("targets         {} in {} of up to {} tokens, each from an empty cache\n",
                        grouped(result.targets), counted(rows, "row"), window);
    if (const auto& divergence = result.divergence) {
        text += fmt::format("reference loss  {:.6f} nats\n"
                            "KL divergence   {} bits mean, {} 99th percentile, {} max\n"
                            "top-1 agreement {:.2f} %\n",
                            divergence->reference_loss_nats, bits(divergence->kl_mean),
                            bits(divergence->kl_p99), bits(divergence->kl_max),
                            100.0 * divergence->top1_agreement);
    }
    return text + fmt::format("speed           {:.0f} tokens/s\n", result.tokens_per_second);
}

nlohmann::ordered_json evaluation_json(const Evaluation& result, std::uint64_t window) {
    nlohmann::ordered_json json = {
        {"loss_nats", result.loss_nats},
        {"perplexity", result.perplexity},
        {"targets", result.targets},
        {"bits_per_byte", nullptr},
        {"target_bytes", result.target_bytes},
        {"rows", result.row_loss_nats.size()},
        {"window", window},
        {"tokens_per_second", result.tokens_per_second},
        {"seconds", result.seconds},
        {"rows_loss_nats", result.row_loss_nats},
    };
    if (result.target_bytes != 0) json["bits_per_byte"] = result.bits_per_byte;
    if (const auto& divergence = result.divergence) {
        json["kl_bits"] = {{"mean", divergence->kl_mean},
                           {"p99", divergence->kl_p99},
                           {"max", divergence->kl_max}};
        json["top1_agreement"] = divergence->top1_agreement;
        json["reference_loss_nats"] = divergence->reference_loss_nats;
    }
    return json;
}

/// A word of a command line as a shell takes it.
std::string quoted(const std::string& word) {
    const bool plain =
        !word.empty() && word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                "abcdefghijklmnopqrstuvwxyz"
                                                "0123456789_-+=.,:/@%") == std::string::npos;
    if (plain) return word;
    std::string text = "'";
    for (const char c : word)
        text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

/// The command that makes this study again.
std::string study_command(const EvalOptions& options) {
    std::string command =
        fmt::format("mnm eval {} --data {} --study", quoted(options.model), quoted(options.data));
    const auto add = [&](const char* flag, const std::string& value) {
        if (!value.empty()) command += fmt::format(" {} {}", flag, quoted(value));
    };
    if (options.rows) add("--rows", std::to_string(*options.rows));
    add("--tokenizer", options.tokenizer);
    add("--bits", options.study.bits);
    add("--grids", options.study.grids);
    add("--matrix", options.study.matrix);
    if (options.study.bandwidth_gb_s)
        add("--bandwidth", fmt::format("{}", *options.study.bandwidth_gb_s));
    if (options.engine.threads != 0) add("--threads", std::to_string(options.engine.threads));
    add("--kernel", options.engine.kernel);
    add("--report", options.study.report);
    return command;
}

Result<void> eval(const EvalOptions& options) {
    MNM_TRY(const Model model, Model::open(options.model));
    std::optional<Model> reference;
    if (!options.reference.empty()) {
        MNM_TRY(reference, Model::open(options.reference));
        MNM_CHECK(verify_tensors(reference->file()));
    }
    MNM_CHECK(verify_tensors(model.file())); // figures of a damaged model would look like any
    MNM_TRY(auto found, find_tokenizer(model.file(), options.tokenizer));
    MNM_CHECK(keep_inputs(options.study.report,
                          {options.model, options.data, found ? found->source : ""}));
    std::optional<Tokenizer> tokenizer;
    if (found) tokenizer.emplace(std::move(found->file));

    MNM_TRY(auto rows, read_rows(options, model, tokenizer ? &*tokenizer : nullptr));
    if (options.study.study) {
        StudyResult result;
        result.model = options.model;
        result.data = options.data;
        result.command = study_command(options);
        return study(model, std::move(rows), options.rows.has_value(), options.study,
                     std::move(result), options.engine, options.report);
    }
    Parallel parallel(options.engine.count());
    auto progress = std::make_unique<Progress>("evaluating", options.report.quiet);
    MNM_TRY(const Evaluation result,
            evaluate(
                model, reference ? &*reference : nullptr, tokenizer ? &*tokenizer : nullptr, rows,
                options.engine.kernels(), parallel,
                [&](std::size_t done, std::size_t total) { progress->update(done, total); },
                options.engine.cache_type()));
    progress.reset();
    MNM_CHECK(model.file().mapping->check_unchanged());
    if (reference) MNM_CHECK(reference->file().mapping->check_unchanged());

    std::uint64_t window = 0;
    for (const EvaluationRow& row : rows)
        window = std::max<std::uint64_t>(window, row.inputs.size());
    if (options.report.json) {
        print_json(evaluation_json(result, window));
    } else {
        print(evaluation_text(result, rows.size(), window));
    }
    return {};
}

} // namespace

Command add_eval(CLI::App& app) {
    auto options = std::make_shared<EvalOptions>();
    CLI::App* parser = app.add_subcommand("eval", "Measure a model's loss on a text");
    parser->add_option("MODEL", options->model, "Model file or checkpoint")
        ->required()
        ->check(file_name());
    parser->add_option("--data", options->data, "Token stream (.tok) or plain text")
        ->required()
        ->check(file_name())
        ->type_name("FILE");
    parser->add_option("--rows", options->rows, "Use only the first N rows")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
        ->type_name("N");
    CLI::Option* reference =
        parser
            ->add_option("--reference", options->reference,
                         "Model to compare with: KL divergence and top-1 agreement")
            ->check(file_name())
            ->type_name("MODEL2");
    parser
        ->add_option("--tokenizer", options->tokenizer,
                     "tokenizer.bin, or a model that holds one (default: MODEL's own)")
        ->check(file_name())
        ->type_name("FILE");
    add_study(*parser, options->study);
    reference->excludes("--study");
    add_engine(*parser, options->engine);
    parser->get_option("--cache")->excludes("--study"); // it compares caches itself
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm eval tales.mnm --data models/tales-chat-val.tok "
                   "--reference models/tales-chat.ckpt\n"
                   "  mnm eval models/tales-chat.ckpt --data models/tales-chat-val.tok "
                   "--study --report study.html");
    return {parser, [options] { return eval(*options); }};
}

} // namespace mnm::cli
