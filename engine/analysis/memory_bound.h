// SPDX-License-Identifier: MIT
// What decoding must read: weights, key/value cache, and the speed that a bandwidth allows.
#pragma once

#include "formats/model_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mnm {

/// Bytes of `weights` weights at `bits` each.
double weight_bytes(double weights, double bits);
/// Bytes of keys and values that one token adds: 2 layers kv_heads head_dim bits / 8.
double cache_bytes_per_token(double layers, double kv_heads, double head_dim, double bits);
/// Tokens a second that reading allows: bandwidth / (weights + cache), all in bytes.
double decode_bound(double bandwidth, double weights, double cache);
/// Tokens of context at which the cache takes as many bytes as the weights.
double overtaking_context(double weights, double cache_per_token);

/// One weight type with one type of cache.
struct MemoryCase {
    std::string weights;              ///< weight type
    std::string cache;                ///< f32; q8, q4: groups of 32 with an f32 scale each
    double weight_bytes = 0;          ///< that one decoded token reads
    double cache_bytes_per_token = 0; ///< written once, read by every later token
    double overtaking_context = 0;    ///< may lie beyond the model's context
    std::vector<double> bounds;       ///< tokens a second at each context, measured bandwidth
    std::vector<double> other_bounds; ///< with the bandwidth given for another machine
};

struct MemoryStudy {
    double bandwidth = 0; ///< bytes a second, measured
    std::optional<double> other_bandwidth;
    std::uint64_t context = 0;    ///< the model's own
    std::vector<double> contexts; ///< from a quarter of it to sixteen times
    std::vector<MemoryCase> cases;
};

/// `bandwidth` and `other` in bytes a second.
MemoryStudy study_memory(const ModelFile& file, double bandwidth, std::optional<double> other);

} // namespace mnm
