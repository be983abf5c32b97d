// SPDX-License-Identifier: MIT
// mnm bench: how fast a model runs here, and how near that is to what the memory allows.
#include "cli/command.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "engine/machine_limits.h"
#include "engine/processors.h"
#include "engine/session.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <memory>
#include <numeric>
#include <span>

namespace mnm::cli {
namespace {

struct BenchOptions {
    std::string model;
    std::uint64_t prefill = 512;
    std::uint64_t decode = 128;
    std::uint64_t depth = 0;
    std::uint64_t repeats = 5;
    bool signature = false;
    bool profile = false;
    EngineOptions engine;
    OutputOptions report;
};

/// Runs of the same tokens, the fastest first.
struct Runs {
    struct Run {
        double seconds = 0;
        Profile profile;
    };
    std::uint64_t tokens = 0; ///< of each run
    std::vector<Run> runs;

    void sort() {
        std::sort(runs.begin(), runs.end(),
                  [](const Run& a, const Run& b) { return a.seconds < b.seconds; });
    }
    /// All that is reported is of this one.
    const Run& middle() const { return runs[runs.size() / 2]; }
    double rate() const { return static_cast<double>(tokens) / middle().seconds; }
    double spread() const {
        return (runs.back().seconds - runs.front().seconds) / middle().seconds;
    }
};

struct Measurement {
    Runs prefill;
    Runs decode;
    double bandwidth = 0; ///< bytes per second
    double peak = 0;      ///< integer multiply-adds per second
    double load = 0;      ///< seconds
};

/// What a phase asks of the machine for each token.
struct Demand {
    double bytes = 0;    ///< of weights and, in attention, of the cache, when decoding
    double products = 0; ///< multiply-adds of its matrices
};
using Demands = std::array<Demand, Profile::phases>;

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

Demands demands_of(const Model& model, const Session& session, const BenchOptions& options) {
    Demands demands{};
    const auto add = [&](Phase phase, const Matrix& w) {
        Demand& demand = demands[static_cast<std::size_t>(phase)];
        demand.bytes += static_cast<double>(w.bytes());
        demand.products += static_cast<double>(w.rows) * static_cast<double>(w.cols);
    };
    for (const Layer& layer : model.layers()) {
        add(Phase::qkv, layer.qkv);
        add(Phase::output, layer.output);
        add(Phase::gate_up, layer.gate_up);
        add(Phase::down, layer.down);
    }
    add(Phase::head, model.head());
    const double keys =
        static_cast<double>(options.depth) + static_cast<double>(options.decode) / 2;
    demands[static_cast<std::size_t>(Phase::attention)].bytes =
        static_cast<double>(session.cache_bytes()) * keys /
        static_cast<double>(model.config().context);
    return demands;
}

/// Runs the tokens after `depth` others.
Result<Runs::Run> run(Session& session, std::span<const TokenId> ids, std::uint64_t depth,
                      std::size_t step) {
    Runs::Run run;
    session.rewind(depth);
    session.measure(&run.profile);
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t done = 0; done < ids.size(); done += step) {
        MNM_TRY([[maybe_unused]] auto logits, session.forward(ids.subspan(done, step)));
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    session.measure(nullptr);
    return run;
}

/// Prefill and decode take turns, so that a machine that slows down slows both.
Result<Measurement> measure(const BenchOptions& options, std::uint64_t vocab, Session& session) {
    const auto prompt = fixed_tokens(options.prefill, vocab);
    const auto text = fixed_tokens(options.decode, vocab);
    Progress progress("measuring", options.report.quiet);
    Measurement measured;
    measured.prefill.tokens = prompt.size();
    measured.decode.tokens = text.size();
    if (options.depth > 0) {
        MNM_TRY([[maybe_unused]] auto logits, session.forward(fixed_tokens(options.depth, vocab)));
    }
    for (std::size_t round = 0; round <= options.repeats; ++round) {
        MNM_TRY(const Runs::Run prefill, run(session, prompt, options.depth, prompt.size()));
        MNM_TRY(const Runs::Run decode, run(session, text, options.depth, 1));
        progress.update(round, options.repeats);
        if (round == 0) continue; // fills the caches
        measured.prefill.runs.push_back(prefill);
        measured.decode.runs.push_back(decode);
    }
    measured.prefill.sort();
    measured.decode.sort();
    return measured;
}

/// What the middle run spent in a phase and made of it.
struct PhaseRate {
    double microseconds = 0; ///< of each token
    double share = 0;        ///< of the run
    double work = 0;         ///< per second: bytes when decoding, else multiply-adds; 0: not said
    double limit_share = 0;  ///< of what the machine can do
};

std::array<PhaseRate, Profile::phases> phase_rates(const Runs& runs, const Demands& demands,
                                                   bool decoding, double limit) {
    const auto& spent = runs.middle().profile.seconds();
    const double total = std::accumulate(spent.begin(), spent.end(), 0.0);
    std::array<PhaseRate, Profile::phases> rates;
    for (std::size_t i = 0; i < Profile::phases; ++i) {
        const double seconds = spent[i] / static_cast<double>(runs.tokens);
        rates[i].microseconds = 1e6 * seconds;
        rates[i].share = spent[i] / total;
        // A prompt's head is computed for its last token alone.
        const bool head_once = !decoding && i == static_cast<std::size_t>(Phase::head);
        const double work = decoding ? demands[i].bytes : demands[i].products;
        if (work == 0 || head_once) continue;
        rates[i].work = work / seconds;
        rates[i].limit_share = rates[i].work / limit;
    }
    return rates;
}

std::string profile_text(std::span<const PhaseRate> rates) {
    std::string text;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        text += fmt::format("  {:<10}{:>10.2f}{:>8.1f}", Profile::names[i], rates[i].microseconds,
                            100 * rates[i].share);
        if (rates[i].work > 0) {
            text +=
                fmt::format("{:>10.1f}{:>8.1f}", rates[i].work / 1e9, 100 * rates[i].limit_share);
        }
        text += '\n';
    }
    return text;
}

nlohmann::ordered_json profile_json(std::span<const PhaseRate> rates, const char* work,
                                    const char* limit) {
    nlohmann::ordered_json phases;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        auto& phase = phases[Profile::names[i]];
        phase = {{"us_per_token", rates[i].microseconds}, {"share", rates[i].share}};
        if (rates[i].work == 0) continue;
        phase[work] = rates[i].work / 1e9;
        phase[limit] = rates[i].limit_share;
    }
    return phases;
}

void report(const BenchOptions& options, const Measurement& measured, const Demands& demands,
            const Model& model, const Parallel& parallel) {
    const double decode = measured.decode.rate(), prefill = measured.prefill.rate();
    const auto bytes = model.bytes_per_token();
    const double cache = demands[static_cast<std::size_t>(Phase::attention)].bytes;
    const double read = static_cast<double>(bytes) + cache;
    const double share = decode * read / measured.bandwidth;
    const Matrix& head = model.head();
    double products = -static_cast<double>(head.rows) * static_cast<double>(head.cols);
    for (const Demand& demand : demands)
        products += demand.products;
    const double peak_share = prefill * products / measured.peak;
    const char* level = options.engine.kernels().level;
    const auto decoding = phase_rates(measured.decode, demands, true, measured.bandwidth);
    const auto prompt = phase_rates(measured.prefill, demands, false, measured.peak);

    if (options.report.json) {
        nlohmann::ordered_json object = {{"decode_tokens_per_second", decode},
                                         {"prefill_tokens_per_second", prefill},
                                         {"decode_spread", measured.decode.spread()},
                                         {"prefill_spread", measured.prefill.spread()},
                                         {"decode_tokens", options.decode},
                                         {"prefill_tokens", options.prefill},
                                         {"depth", options.depth},
                                         {"repeats", options.repeats},
                                         {"bytes_per_token", bytes},
                                         {"cache_bytes_per_token", cache},
                                         {"cache", options.engine.cache},
                                         {"read_bandwidth_gb_s", measured.bandwidth / 1e9},
                                         {"bandwidth_share", share},
                                         {"integer_peak_gmac_s", measured.peak / 1e9},
                                         {"integer_peak_share", peak_share},
                                         {"load_ms", 1e3 * measured.load},
                                         {"kernel", level},
                                         {"threads", parallel.threads()}};
        if (options.profile) {
            object["decode_phases"] = profile_json(decoding, "gb_s", "bandwidth_share");
            object["prefill_phases"] = profile_json(prompt, "gmac_s", "integer_peak_share");
        }
        print_json(object);
        return;
    }
    const std::string threads_reason =
        options.engine.threads == 0 ? ": " + usable_processors().reason : "";
    const std::string after =
        options.depth == 0 ? "from an empty cache" : fmt::format("after {} others", options.depth);
    print(fmt::format("decode     {:.1f} tokens/s ({} tokens {}; spread {:.1f} %)\n"
                      "prefill    {:.1f} tokens/s ({} tokens at once; spread {:.1f} %)\n",
                      decode, options.decode, after, 100 * measured.decode.spread(), prefill,
                      options.prefill, 100 * measured.prefill.spread()));
    print(fmt::format(
        "reads      {} bytes of weights and {} of the {} cache per token\n"
        "memory     {:.1f} GB/s with plain reads; decoding reaches {:.1f} GB/s, {:.1f} %\n"
        "multiplies {:.0f} G/s on registers; prefill reaches {:.0f} G/s, {:.1f} %\n",
        grouped(bytes), grouped(static_cast<std::uint64_t>(cache)), options.engine.cache,
        measured.bandwidth / 1e9, decode * read / 1e9, 100 * share, measured.peak / 1e9,
        prefill * products / 1e9, 100 * peak_share));
    print(fmt::format("load       {:.2f} ms\nkernel     {}\nthreads    {}{}\n", 1e3 * measured.load,
                      level, parallel.threads(), threads_reason));
    if (!options.profile) return;
    print("\ndecode      us/token       %      GB/s  % of memory\n" + profile_text(decoding));
    print("\nprefill     us/token       %     GMAC/s  % of peak\n" + profile_text(prompt));
}

Result<void> bench(BenchOptions options) {
    const auto start = std::chrono::steady_clock::now();
    MNM_TRY(const Model model, Model::open(options.model));
    const std::chrono::duration<double> load = std::chrono::steady_clock::now() - start;
    const kernels::Kernels& kernels = options.engine.kernels();
    Parallel parallel(options.engine.count());
    MNM_TRY(Session session,
            Session::create(model, kernels, parallel, options.engine.cache_type()));

    if (options.signature) {
        MNM_CHECK(verify_tensors(model.file()));
        MNM_TRY(const std::uint64_t hash, signature(model, session));
        if (options.report.json) {
            print_json({{"signature", fmt::format("{:016x}", hash)}, {"kernel", kernels.level}});
        } else {
            print(fmt::format("{:016x}\n", hash));
        }
        return {};
    }

    const std::uint64_t context = model.config().context;
    if (options.depth >= context) {
        return Error{fmt::format("{}: --depth {} leaves no room in the context of {}",
                                 options.model, options.depth, context)};
    }
    options.prefill = std::min(options.prefill, context - options.depth);
    options.decode = std::min(options.decode, context - options.depth);
    MNM_TRY(Measurement measured, measure(options, model.config().vocab, session));
    measured.load = load.count();
    MNM_TRY(measured.bandwidth, read_bandwidth(parallel, kernels));
    measured.peak = integer_peak(parallel, kernels);
    const Demands demands = demands_of(model, session, options);
    report(options, measured, demands, model, parallel);
    return {};
}

} // namespace

Command add_bench(CLI::App& app) {
    auto options = std::make_shared<BenchOptions>();
    CLI::App* parser =
        app.add_subcommand("bench", "Measure how fast a model runs (memory: 512 MB)");
    const auto count = CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 24);
    parser->add_option("MODEL", options->model, "Model file or checkpoint")
        ->required()
        ->check(file_name());
    parser->add_option("--prefill", options->prefill, "Tokens of the prompt, at most the context")
        ->check(count)
        ->capture_default_str()
        ->type_name("N");
    parser->add_option("--decode", options->decode, "Tokens one by one, at most the context")
        ->check(count)
        ->capture_default_str()
        ->type_name("N");
    parser->add_option("--depth", options->depth, "Tokens already in the cache before each run")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 24))
        ->capture_default_str()
        ->type_name("N");
    parser->add_option("--repeats", options->repeats, "Runs of each, of which the median counts")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10000}))
        ->capture_default_str()
        ->type_name("N");
    parser->add_flag("--profile", options->profile, "Also the time of each part of a pass");
    parser
        ->add_flag("--signature", options->signature,
                   "Only a hash of the logits of a fixed prompt: equal wherever the bits are")
        ->excludes("--profile")
        ->excludes("--depth");
    add_engine(*parser, options->engine);
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm bench tales.mnm --prefill 128 --threads 2");
    return {parser, [options] { return bench(*options); }};
}

} // namespace mnm::cli
