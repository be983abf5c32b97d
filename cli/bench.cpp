// SPDX-License-Identifier: MIT
// mnm bench: how fast a model runs here, and how near that is to what the memory allows.
#include "cli/command.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "engine/median.h"
#include "engine/processors.h"
#include "engine/read_bandwidth.h"
#include "engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>

namespace mnm::cli {
namespace {

constexpr std::size_t repeats = 5;

struct BenchOptions {
    std::string model;
    std::uint64_t prefill = 512;
    std::uint64_t decode = 128;
    bool signature = false;
    EngineOptions engine;
    OutputOptions report;
};

struct Measurement {
    std::vector<double> prefill; ///< tokens per second, one per repeat
    std::vector<double> decode;
};

double spread(const std::vector<double>& values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return (*high - *low) / median(values);
}

/// A fixed prompt that any vocabulary has.
std::vector<TokenId> fixed_tokens(std::uint64_t count, std::uint64_t vocab) {
    std::vector<TokenId> ids(count);
    for (std::uint64_t i = 0; i < count; ++i)
        ids[i] = static_cast<TokenId>((i * 37 + 11) % vocab);
    return ids;
}

/// FNV-1a over the bits of the logits after each of 32 fixed tokens (fewer in a shorter context).
Result<std::uint64_t> signature(const Model& model, Session& session) {
    const auto ids =
        fixed_tokens(std::min<std::uint64_t>(32, model.config().context), model.config().vocab);
    std::uint64_t hash = 0xcbf29ce484222325;
    MNM_CHECK(session.forward_all(ids, [&](std::size_t, std::span<const float> row) {
        for (const float value : row) {
            const auto bits = std::bit_cast<std::uint32_t>(value);
            for (int shift = 0; shift < 32; shift += 8) {
                hash ^= bits >> shift & 0xFF;
                hash *= 0x100000001b3;
            }
        }
    }));
    return hash;
}

Result<double> seconds_of(Session& session, std::span<const TokenId> ids, bool one_by_one) {
    session.rewind(0);
    const std::size_t step = one_by_one ? 1 : ids.size();
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t done = 0; done < ids.size(); done += step) {
        MNM_TRY([[maybe_unused]] auto logits, session.forward(ids.subspan(done, step)));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Prefill and decode take turns, so that a machine that slows down slows both.
Result<Measurement> measure(const BenchOptions& options, std::uint64_t vocab, Session& session) {
    const auto prompt = fixed_tokens(options.prefill, vocab);
    const auto text = fixed_tokens(options.decode, vocab);
    Progress progress("measuring", options.report.quiet);
    Measurement measured;
    for (std::size_t round = 0; round <= repeats; ++round) {
        MNM_TRY(const double prefill, seconds_of(session, prompt, false));
        MNM_TRY(const double decode, seconds_of(session, text, true));
        progress.update(round, repeats);
        if (round == 0) continue; // warms the caches
        measured.prefill.push_back(static_cast<double>(prompt.size()) / prefill);
        measured.decode.push_back(static_cast<double>(text.size()) / decode);
    }
    return measured;
}

Result<void> bench(BenchOptions options) {
    const auto start = std::chrono::steady_clock::now();
    MNM_TRY(const Model model, Model::open(options.model));
    const std::chrono::duration<double, std::milli> load = std::chrono::steady_clock::now() - start;
    const kernels::Kernels& kernels = options.engine.kernels();
    Parallel parallel(options.engine.count());
    MNM_TRY(Session session, Session::create(model, kernels, parallel));

    if (options.signature) {
        MNM_TRY(const std::uint64_t hash, signature(model, session));
        if (options.report.json) {
            print_json({{"signature", fmt::format("{:016x}", hash)}, {"kernel", kernels.level}});
        } else {
            print(fmt::format("{:016x}\n", hash));
        }
        return {};
    }

    options.prefill = std::min(options.prefill, model.config().context);
    options.decode = std::min(options.decode, model.config().context);
    MNM_TRY(const Measurement measured, measure(options, model.config().vocab, session));
    const double bandwidth = read_bandwidth(parallel);
    const double decode = median(measured.decode);
    const double prefill = median(measured.prefill);
    const auto bytes = model.bytes_per_token();
    const double share = decode * static_cast<double>(bytes) / bandwidth;

    if (options.report.json) {
        print_json({{"decode_tokens_per_second", decode},
                    {"prefill_tokens_per_second", prefill},
                    {"decode_spread", spread(measured.decode)},
                    {"prefill_spread", spread(measured.prefill)},
                    {"decode_tokens", options.decode},
                    {"prefill_tokens", options.prefill},
                    {"repeats", repeats},
                    {"bytes_per_token", bytes},
                    {"read_bandwidth_gb_s", bandwidth / 1e9},
                    {"bandwidth_share", share},
                    {"load_ms", load.count()},
                    {"kernel", kernels.level},
                    {"threads", parallel.threads()}});
        return {};
    }
    const std::string threads_reason =
        options.engine.threads == 0 ? ": " + usable_processors().reason : "";
    print(
        fmt::format("decode     {:.1f} tokens/s ({} tokens from an empty cache; spread {:.1f} %)\n"
                    "prefill    {:.1f} tokens/s ({} tokens at once; spread {:.1f} %)\n",
                    decode, options.decode, 100 * spread(measured.decode), prefill, options.prefill,
                    100 * spread(measured.prefill)));
    print(fmt::format("weights    {} bytes per token, {:.2f} GB/s\n"
                      "memory     {:.2f} GB/s with plain reads; decoding reaches {:.1f} %\n",
                      grouped(bytes), decode * static_cast<double>(bytes) / 1e9, bandwidth / 1e9,
                      100 * share));
    print(fmt::format("load       {:.2f} ms\nkernel     {}\nthreads    {}{}\n", load.count(),
                      kernels.level, parallel.threads(), threads_reason));
    return {};
}

} // namespace

Command add_bench(CLI::App& app) {
    auto options = std::make_shared<BenchOptions>();
    CLI::App* parser = app.add_subcommand("bench", "Measure how fast a model runs");
    const auto count = CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 24);
    parser->add_option("MODEL", options->model, "Model file or checkpoint")->required();
    parser->add_option("--prefill", options->prefill, "Tokens of the prompt, at most the context")
        ->check(count)
        ->capture_default_str()
        ->type_name("N");
    parser->add_option("--decode", options->decode, "Tokens one by one, at most the context")
        ->check(count)
        ->capture_default_str()
        ->type_name("N");
    parser->add_flag("--signature", options->signature,
                     "Only a hash of the logits of a fixed prompt: equal wherever the bits are");
    add_engine(*parser, options->engine);
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm bench tales.mnm --prefill 128 --threads 2");
    return {parser, [options] { return bench(*options); }};
}

} // namespace mnm::cli
