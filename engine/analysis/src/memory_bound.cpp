// SPDX-License-Identifier: MIT
// Bytes that decoding reads.
#include "engine/analysis/memory_bound.h"

namespace mnm {

double weight_bytes(double weights, double bits) {
    return weights * bits / 8;
}

double cache_bytes_per_token(double layers, double kv_heads, double head_dim, double bits) {
    return 2 * layers * kv_heads * head_dim * bits / 8;
}

double decode_bound(double bandwidth, double weights, double cache) {
    return bandwidth / (weights + cache);
}

double overtaking_context(double weights, double cache_per_token) {
    return weights / cache_per_token;
}

} // namespace mnm
