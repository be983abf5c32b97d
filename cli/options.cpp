// SPDX-License-Identifier: MIT
// Flags that several subcommands share.
#include "cli/options.h"

#include "engine/processors.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace mnm::cli {
namespace {

/// Levenshtein distance.
std::size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substitute = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
            diagonal = row[j];
            row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

std::string level_problem(const std::string& level) {
    if (kernels::find(level) != nullptr) return {};
    const auto built = kernels::built_levels();
    const bool known = std::find(built.begin(), built.end(), level) != built.end();
    return fmt::format("kernel level '{}' {}; usable: {}", level,
                       known ? "cannot be used: this processor lacks it, or the system does "
                               "not allow it"
                             : "is unknown or not built",
                       joined(kernels::usable_levels()));
}

std::string name_problem(const std::string& name) {
    return name.empty() ? "an empty text is no file's name" : "";
}

} // namespace

std::string joined(const std::vector<std::string>& names) {
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string nearest(const std::vector<std::string>& names, const std::string& value,
                    std::size_t most) {
    const auto found = std::min_element(names.begin(), names.end(),
                                        [&](const std::string& a, const std::string& b) {
                                            return distance(a, value) < distance(b, value);
                                        });
    return distance(*found, value) <= most ? *found : std::string();
}

CLI::Validator one_of(std::vector<std::string> names) {
    std::string listed = "{" + joined(names) + "}";
    return CLI::Validator(
        [names = std::move(names)](std::string& value) -> std::string {
            if (std::find(names.begin(), names.end(), value) != names.end()) return {};
            const std::string near = nearest(names, value, 2);
            return fmt::format("'{}' is not offered; there is {}{}", value, joined(names),
                               near.empty() || distance(near, value) >= value.size()
                                   ? ""
                                   : fmt::format(" (nearest: {})", near));
        },
        listed);
}

CLI::Validator whole_number() {
    return CLI::Validator(
        [](std::string& value) -> std::string {
            std::uint64_t number = 0;
            const char* end = value.data() + value.size();
            const auto [stop, problem] = std::from_chars(value.data(), end, number);
            if (problem == std::errc{} && stop == end) return {};
            return fmt::format("'{}' is not a whole number below 2^64", value);
        },
        "");
}

CLI::Validator file_name() {
    return CLI::Validator([](std::string& name) { return name_problem(name); }, "");
}

CLI::Validator output_name() {
    return CLI::Validator(
        [](std::string& value) -> std::string {
            if (value != "-") return name_problem(value);
            return "'-' is no file's name here; /dev/stdout is standard output, ./- a file";
        },
        "");
}

CLI::Validator number_between(double low, double high) {
    return CLI::Validator(
        [low, high](std::string& value) -> std::string {
            char* end = nullptr;
            const double number = std::strtod(value.c_str(), &end);
            const bool whole = end != value.c_str() && *end == '\0';
            if (whole && std::isfinite(number) && number >= low && number <= high) return {};
            return fmt::format("'{}' is not a number from {} to {}", value, low, high);
        },
        fmt::format("[{} - {}]", low, high));
}

void add_json(CLI::App& parser, OutputOptions& options) {
    parser.add_flag("--json", options.json, "Report as one JSON object on standard output");
}

void add_quiet(CLI::App& parser, OutputOptions& options) {
    parser.add_flag("-q,--quiet", options.quiet,
                    "No progress, no notes, and no report of a file that was written");
}

unsigned ThreadOptions::count() const {
    return threads != 0 ? threads : usable_processors().count;
}

void add_threads(CLI::App& parser, ThreadOptions& options) {
    parser
        .add_option("--threads", options.threads,
                    "Threads to use (default: the processors this process may use)")
        ->check(CLI::Range(1U, 1024U))
        ->type_name("N");
}

const kernels::Kernels& EngineOptions::kernels() const {
    const kernels::Kernels* found = kernel.empty() ? nullptr : kernels::find(kernel);
    return found != nullptr ? *found : kernels::best();
}

CacheType EngineOptions::cache_type() const {
    return cache == "f16" ? CacheType::f16 : cache == "q8" ? CacheType::q8 : CacheType::f32;
}

void add_engine(CLI::App& parser, EngineOptions& options) {
    add_threads(parser, options);
    parser
        .add_option("--kernel", options.kernel,
                    "Kernel level; a wrong one lists those that are usable (default: MNM_KERNEL, "
                    "else the fastest)")
        ->check(CLI::Validator([](std::string& level) { return level_problem(level); }, ""))
        ->type_name("LEVEL");
    parser
        .add_option("--cache", options.cache,
                    "Numbers of the key/value cache; f16 and q8 take a half and a quarter")
        ->check(one_of({"f32", "f16", "q8"}))
        ->capture_default_str()
        ->type_name("TYPE");
    // Read here, for the parser would read it for every subcommand, also those without kernels.
    parser.callback([&options] {
        const char* level = std::getenv("MNM_KERNEL");
        if (!options.kernel.empty() || level == nullptr || *level == '\0') return;
        options.kernel = level;
        if (const std::string problem = level_problem(level); !problem.empty())
            throw CLI::ValidationError("the environment variable MNM_KERNEL", problem);
    });
}

} // namespace mnm::cli
