// SPDX-License-Identifier: MIT
// What decoding must read: weights, key/value cache, and the speed that a bandwidth allows.
#pragma once

namespace mnm {

/// Bytes of `weights` weights at `bits` each.
double weight_bytes(double weights, double bits);
/// Bytes of keys and values that one token adds: 2 layers kv_heads head_dim bits / 8.
double cache_bytes_per_token(double layers, double kv_heads, double head_dim, double bits);
/// Tokens a second that reading allows: bandwidth / (weights + cache), all in bytes.
double decode_bound(double bandwidth, double weights, double cache);
/// Tokens of context at which the cache takes as many bytes as the weights.
double overtaking_context(double weights, double cache_per_token);

} // namespace mnm
