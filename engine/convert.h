// SPDX-License-Identifier: MIT
// From one model file to another: decode, encode, write, read back.
#pragma once

#include "engine/parallel.h"
#include "formats/model_file.h"
#include "formats/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mnm {

/// The largest magnitude a weight type can hold.
float largest_weight(WeightType type);

struct ConvertOptions {
    EncodeOptions encode;
    /// (weights done, weights in all), from the calling thread.
    std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct ConvertedTensor {
    std::string name;
    std::string type;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    std::uint64_t bytes = 0;
};

struct ConvertReport {
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;    ///< of the file
    double nominal_bits = 0;    ///< of the asked type
    double bits_per_weight = 0; ///< bytes of the file * 8 / parameters
    double seconds = 0;
    std::vector<ConvertedTensor> tensors;
};

/// Writes `plan` to `path` through `format`, rows in parallel, then maps the result, reads it back
/// and compares every tensor's bytes with what was written before the name is taken. Errors: output
/// and input are the same file, a tensor that differs from its checksum, a weight that is not
/// finite (tensor and row named), a source tensor that is already quantised to another type,
/// anything the disk says.
Result<ConvertReport> convert(const ModelFile& source, const WritePlan& plan, const Format& format,
                              const std::string& path, const ConvertOptions& options,
                              Parallel& parallel);

} // namespace mnm
