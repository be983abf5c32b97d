// SPDX-License-Identifier: MIT
// mnm chat: talk with a model.
#include "cli/chat_loop.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/tokenizer_source.h"
#include "cli/warm_up.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <random>

namespace mnm::cli {
namespace {

struct ChatOptions {
    std::string model;
    std::string tokenizer;
    std::optional<double> temperature;
    std::optional<double> top_p;
    std::optional<std::uint32_t> top_k;
    std::optional<std::uint32_t> max_tokens;
    std::optional<std::uint64_t> seed;
    std::string system;
    std::optional<std::string> prompt;
    EngineOptions engine;
    OutputOptions report;
};

std::uint64_t random_seed() {
    std::random_device device;
    // Short enough to be typed again.
    return device() & 0x7FFFFFFF;
}

/// Only the reply goes to standard output.
Result<void> answer_once(const ChatOptions& options, Assistant& assistant, std::uint64_t seed) {
    const auto show = [&](std::string_view piece) {
        if (options.report.json) return;
        print(piece);
        flush_output();
    };
    MNM_TRY(const Reply reply, assistant.answer(*options.prompt, show, nullptr));
    if (options.report.json) {
        print_json(reply_json(reply, seed));
        return {};
    }
    print("\n");
    flush_output();
    if (!options.report.quiet) std::fputs((dim(reply_remark(reply)) + "\n").c_str(), stderr);
    return {};
}

Result<void> chat(const ChatOptions& options) {
    MNM_TRY(const Model model, Model::open(options.model));
    std::optional<WarmUp> warm_up;
    if (options.engine.count() > 1) warm_up.emplace(model.file().mapping);
    MNM_TRY(FoundTokenizer found, need_tokenizer(model.file(), options.tokenizer));
    const Tokenizer tokenizer(std::move(found.file));
    const SamplingDefaults defaults = model.file().details.sampling.value_or(SamplingDefaults{});

    SamplerOptions sampling;
    sampling.temperature = options.temperature.value_or(defaults.temperature);
    sampling.top_p = options.top_p.value_or(defaults.top_p);
    sampling.top_k = options.top_k.value_or(defaults.top_k);
    sampling.seed = options.seed ? *options.seed : random_seed();
    Parallel parallel(options.engine.count());
    const kernels::Kernels& kernels = options.engine.kernels();
    MNM_TRY(Assistant assistant,
            Assistant::create(model, tokenizer, kernels, parallel, options.engine.cache_type(),
                              sampling, options.max_tokens.value_or(defaults.max_tokens)));
    MNM_CHECK(assistant.set_system(options.system));

    if (options.prompt) return answer_once(options, assistant, sampling.seed);
    if (!options.report.quiet && is_terminal(Stream::error)) {
        note(fmt::format("{}: {} parameters, context {}; kernel {}, {} threads. /help lists the "
                         "commands.",
                         options.model, grouped(model.config().parameters()),
                         model.config().context, kernels.level, parallel.threads()));
    }
    return ChatLoop(assistant, sampling.seed, options.report.quiet, options.report.json).run();
}

} // namespace

Command add_chat(CLI::App& app) {
    auto options = std::make_shared<ChatOptions>();
    CLI::App* parser = app.add_subcommand("chat", "Talk with a model");
    const auto count = CLI::Range(std::uint32_t{1}, std::uint32_t{1} << 30);
    parser->add_option("MODEL", options->model, "Model file or checkpoint")
        ->required()
        ->check(file_name());
    parser
        ->add_option("--tokenizer", options->tokenizer,
                     "tokenizer.bin, or a model that holds one (default: MODEL's own)")
        ->check(file_name())
        ->type_name("FILE");
    parser->add_option("--temp", options->temperature, "Temperature; 0 is greedy (default 0.7)")
        ->check(number_between(0, 100))
        ->type_name("X");
    parser
        ->add_option("--top-p", options->top_p,
                     "Smallest set of tokens with this probability; 1 is off (default 0.9)")
        ->check(number_between(0, 1))
        ->type_name("X");
    parser->add_option("--top-k", options->top_k, "Likeliest tokens; 0 is off (default 64)")
        ->check(CLI::Range(std::uint32_t{0}, std::uint32_t{1} << 30))
        ->type_name("N");
    parser->add_option("--max-tokens", options->max_tokens, "Longest reply (default 400)")
        ->check(count)
        ->type_name("N");
    parser->add_option("--seed", options->seed, "Repeats a chat exactly (default: random)")
        ->check(whole_number())
        ->type_name("N");
    parser->add_option("--system", options->system, "What the model is told first")
        ->type_name("TEXT");
    parser->add_option("--prompt", options->prompt, "Answer this on standard output and end")
        ->type_name("TEXT");
    add_engine(*parser, options->engine);
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer(
        "Without --prompt, a terminal gets a chat (/help lists its commands) and a pipe a "
        "reply to\neach line; a reply may have line breaks, with --json it is one object on one "
        "line.\nA reply that repeats itself eight times is stopped.\n"
        "Example:\n  mnm chat tales.mnm --prompt 'Once upon a time there was a king.' "
        "--seed 7");
    return {parser, [options] { return chat(*options); }};
}

} // namespace mnm::cli
