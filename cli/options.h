// SPDX-License-Identifier: MIT
// Flags that several subcommands share, and the checks of values that people type.
#pragma once

#include "engine/parallel.h"
#include "engine/session.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Validator;
} // namespace CLI

namespace mnm::cli {

struct OutputOptions {
    bool json = false;
    bool quiet = false;
};
void add_json(CLI::App& parser, OutputOptions& options);
void add_quiet(CLI::App& parser, OutputOptions& options);

struct ThreadOptions {
    unsigned threads = 0; ///< 0: the processors this process may use
    unsigned count() const;
};
void add_threads(CLI::App& parser, ThreadOptions& options);

struct EngineOptions : ThreadOptions {
    std::string kernel; ///< empty: the fastest usable one
    std::string cache = "f32";
    const kernels::Kernels& kernels() const;
    CacheType cache_type() const;
};
/// --threads, --kernel (also MNM_KERNEL) and --cache.
void add_engine(CLI::App& parser, EngineOptions& options);

/// Refuses, with the list and the nearest name if one is near, a value that is not one of `names`.
CLI::Validator one_of(std::vector<std::string> names);
/// Digits alone, below 2^64; CLI11 lets -1 wrap around.
CLI::Validator whole_number();
/// Any name but none: an unset variable of a shell would pass unnoticed.
CLI::Validator file_name();
/// The same, and not "-", which would become a file of that name.
CLI::Validator output_name();
/// A finite number in [low, high]; CLI11's own range check lets NaN pass.
CLI::Validator number_between(double low, double high);

/// The name (of at least one) that is spelt most like `value`; empty when more than `most` letters
/// differ.
std::string nearest(const std::vector<std::string>& names, const std::string& value,
                    std::size_t most = SIZE_MAX);

/// "a, b, c".
std::string joined(const std::vector<std::string>& names);

} // namespace mnm::cli
