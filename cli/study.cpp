// SPDX-License-Identifier: MIT
// mnm eval --study: flags, the run, and where its figures go.
#include "cli/study.h"

#include "cli/progress.h"
#include "cli/report.h"
#include "engine/machine_limits.h"
#include "formats/atomic_file.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <set>
#include <string_view>

namespace mnm::cli {
namespace {

/// Tokens that a study runs on unless --rows says otherwise: each of its runs takes them all.
constexpr std::size_t default_tokens = 1024;
constexpr int lowest_bits = 2, highest_bits = 8;

/// All of `text` as a whole number from low to high.
std::optional<int> number(std::string_view text, int low, int high) {
    int value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem != std::errc{} || stop != end || value < low || value > high) return {};
    return value;
}

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (std::size_t end = 0; end != std::string_view::npos;) {
        end = text.find(at);
        std::string_view part = text.substr(0, end);
        while (part.starts_with(' '))
            part.remove_prefix(1);
        while (part.ends_with(' '))
            part.remove_suffix(1);
        parts.push_back(part);
        if (end != std::string_view::npos) text.remove_prefix(end + 1);
    }
    return parts;
}

/// The first rows until there are enough tokens, and a target among them.
void keep_first(std::vector<EvaluationRow>& rows) {
    std::size_t tokens = 0, count = 0;
    bool target = false;
    for (const EvaluationRow& row : rows) {
        tokens += row.inputs.size();
        if (count > 0 && target && tokens > default_tokens) break;
        ++count;
        target =
            target || std::find(row.counted.begin(), row.counted.end(), 1) != row.counted.end();
    }
    rows.resize(count);
}

} // namespace

std::vector<int> parse_bits(const std::string& text) {
    std::set<int> bits;
    for (const std::string_view part : split(text, ',')) {
        const auto ends = split(part, '-');
        const auto low = number(ends.front(), lowest_bits, highest_bits);
        const auto high = number(ends.back(), lowest_bits, highest_bits);
        if (ends.size() > 2 || !low || !high || *low > *high) return {};
        for (int b = *low; b <= *high; ++b)
            bits.insert(b);
    }
    return {bits.begin(), bits.end()};
}

std::vector<FixedPoint> parse_grids(const std::string& text) {
    std::vector<FixedPoint> grids;
    for (std::string_view part : split(text, ',')) {
        if (!part.starts_with('Q') && !part.starts_with('q')) return {};
        part.remove_prefix(1);
        const auto sides = split(part, '.');
        if (sides.size() != 2) return {};
        const auto whole = number(sides[0], 0, 30), fraction = number(sides[1], 0, 30);
        if (!whole || !fraction || *whole + *fraction < 1 || *whole + *fraction > 30) return {};
        grids.push_back({*whole, *fraction});
    }
    return grids;
}

void add_study(CLI::App& parser, StudyFlags& flags) {
    CLI::Option* study = parser.add_flag(
        "--study", flags.study,
        "What each bit costs: SNR, perplexity and KL of quantised weights, activations and caches "
        "(docs/rate-distortion.md); on the first 1,024 tokens unless --rows is given");
    const auto checked = [](auto parse, const char* expected) {
        return CLI::Validator(
            [=](std::string& value) -> std::string {
                if (!parse(value).empty()) return {};
                return fmt::format("'{}' is not {}", value, expected);
            },
            "");
    };
    parser.add_option("--report", flags.report, "Write the study as one HTML page with its curves")
        ->needs(study)
        ->check(output_name())
        ->type_name("FILE");
    parser.add_option("--bits", flags.bits, "Bits to study, such as 2-8 or 3,4,8 (default 2-8)")
        ->needs(study)
        ->check(checked(parse_bits, "a list of bits from 2 to 8, such as 2-8 or 3,4,8"))
        ->type_name("LIST");
    parser
        .add_option("--grids", flags.grids,
                    "Fixed-point grids to study (default Q0.7,Q1.6,Q2.5,Q0.3,Q1.2)")
        ->needs(study)
        ->check(checked(parse_grids, "a list of grids Qi.f with i + f from 1 to 30, such as Q1.6"))
        ->type_name("LIST");
    parser
        .add_option("--matrix", flags.matrix,
                    "Matrix that gets a stale scale (default: the output head)")
        ->needs(study)
        ->type_name("NAME");
    parser
        .add_option("--bandwidth", flags.bandwidth_gb_s,
                    "Memory bandwidth of another machine, GB/s, for its decode bound")
        ->needs(study)
        ->check(number_between(1e-3, 1e6))
        ->type_name("X");
}

Result<void> study(const Model& model, std::vector<EvaluationRow> rows, bool all_rows,
                   const StudyFlags& flags, StudyResult result, const EngineOptions& engine,
                   const OutputOptions& report) {
    const auto began = std::chrono::steady_clock::now();
    if (!all_rows) keep_first(rows);
    // Before the work, so that a folder that cannot be written to costs nobody a minute.
    std::optional<AtomicFile> page;
    if (!flags.report.empty()) {
        MNM_TRY(AtomicFile file, AtomicFile::create(flags.report));
        page.emplace(std::move(file));
    }
    StudyOptions options;
    if (!flags.bits.empty()) options.bits = parse_bits(flags.bits);
    if (!flags.grids.empty()) options.grids = parse_grids(flags.grids);
    options.stale_matrix = flags.matrix;
    auto progress = std::make_unique<Progress>("studying", report.quiet);
    progress->update(0, 1); // copying a large model takes seconds, and the reference's run too
    options.progress = [&](std::size_t done, std::size_t total) { progress->update(done, total); };
    Parallel parallel(engine.count());
    // Before the work as well: it takes half a gigabyte that may not be there.
    MNM_TRY(const double bandwidth, read_bandwidth(parallel, engine.kernels()));
    MNM_TRY(result.study, run_study(model, rows, options, engine.kernels(), parallel));
    progress.reset();
    MNM_CHECK(model.file().mapping->check_unchanged());
    std::optional<double> other;
    if (flags.bandwidth_gb_s) other = *flags.bandwidth_gb_s * 1e9;
    result.memory = study_memory(model.file(), bandwidth, other);
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

    // The figures first: a disk that is full must not take them along.
    if (report.json) {
        print_json(study_json(result));
    } else {
        print(study_text(result));
    }
    if (!page) return {};
    flush_output();
    const std::string text = study_page(result);
    MNM_CHECK(page->write(std::as_bytes(std::span(text))));
    MNM_CHECK(page->commit());
    if (!report.json) print(fmt::format("report          {}\n", flags.report));
    return {};
}

} // namespace mnm::cli
