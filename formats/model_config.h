// SPDX-License-Identifier: MIT
// The numbers that describe a Llama-style model, and the limits every reader checks them against.
#pragma once

#include "formats/result.h"

#include <cstdint>
#include <string_view>

namespace mnm {

/// How rotary frequencies are stretched for a context longer than the trained one.
struct RopeScaling {
    enum class Type : std::uint32_t { none, linear, llama3 };
    Type type = Type::none;
    double factor = 1.0;                ///< linear and llama3: divisor of the (low) frequencies
    double low_freq_factor = 1.0;       ///< llama3 only
    double high_freq_factor = 4.0;      ///< llama3 only
    std::uint64_t original_context = 0; ///< llama3 only: the context before stretching

    friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// Shape letters of docs/format-2.md in brackets. Every matrix is row-major [out][in]; y = W x.
struct ModelConfig {
    std::uint64_t layers = 0;   ///< [L]
    std::uint64_t width = 0;    ///< [D] model width
    std::uint64_t heads = 0;    ///< [H] query heads
    std::uint64_t kv_heads = 0; ///< [KVH] key/value heads; divides heads
    std::uint64_t head_dim = 0; ///< [hd] even
    std::uint64_t ffn = 0;      ///< [F] feed-forward width
    std::uint64_t vocab = 0;    ///< [V]
    std::uint64_t context = 0;  ///< [T]
    double rope_base = 10000.0;
    double norm_eps = 1e-5;
    bool tied_head = true; ///< the embedding is also the output matrix
    RopeScaling rope_scaling;

    std::uint64_t q_rows() const { return heads * head_dim; }
    std::uint64_t kv_rows() const { return kv_heads * head_dim; }
    std::uint64_t qkv_rows() const { return q_rows() + 2 * kv_rows(); }
    /// Number of weights, norms included; the head counts once when tied.
    std::uint64_t parameters() const;

    /// Refuses a shape no reader may pass on: a count of zero or beyond its limit, an odd head_dim,
    /// heads not a multiple of kv_heads, a matrix width that is no multiple of 32, a RoPE base
    /// or factor out of range, an epsilon that is not finite and positive. `file` is named in the
    /// message.
    Result<void> check(std::string_view file) const;

    friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

} // namespace mnm
