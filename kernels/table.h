// SPDX-License-Identifier: MIT
// The table of kernels: arithmetic on spans, once per level, with the same bits on every level.
// Instruction-set units include this header, so it holds declarations and constants only.
//
// No I/O, no threads, no allocation, nothing throws. docs/numerics.md says why the bits agree; in
// short: integer dots are exact, and every float is made by the same operations in the same order.
//   - A product of quantised operands adds its groups in column order, one fused multiply-add each.
//   - A score of attention adds its products in order of the head's numbers, one fused multiply-add
//   each.
//   - Every other sum keeps sixteen lanes (element i goes to lane i mod 16, in order, by fma or
//   add) and
//     folds them as i + (i+8), then + 4, + 2, + 1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mnm::kernels {

/// Columns that share one scale, in activations and in q4 weights.
inline constexpr std::size_t group = 32;
/// Rows a product works on at once: ranges given to threads start at multiples of this.
inline constexpr std::size_t row_block = 16;
/// Keys attention reduces before merging; blocks are counted from position 0.
inline constexpr std::size_t key_block = 64;
/// Values of a head and what attention makes of them are padded with zeros to a multiple of this.
inline constexpr std::size_t lanes = 16;

/// What 1/scale times the first largest weight of a q4 group may be, or (the last one) times the
/// largest magnitude: -7.1 to -8.9 in tenths, and 7.
inline constexpr std::size_t q4_candidates = 20;
constexpr float q4_candidate(std::size_t i) noexcept {
    return i + 1 == q4_candidates ? 7.0f : static_cast<float>(-71 - static_cast<int>(i)) / 10.0f;
}

/// Activation vectors quantised by Kernels::quantize.
struct QuantizedRows {
    const std::int8_t* q;    ///< [count][cols], in [-127, 127]
    const float* scale;      ///< [count][cols / group]
    const std::int32_t* sum; ///< [count][cols / group]: sum of a group's q
    std::size_t count;
    std::size_t cols; ///< a multiple of group
};

/// Float activations.
struct FloatRows {
    const float* x; ///< [count][cols]
    std::size_t count;
    std::size_t cols; ///< a multiple of group
};

/// Where a product goes: y[t * stride + r] for token t and row r of the matrix.
struct Target {
    float* y;
    std::size_t stride;
    bool add; ///< y += product (one rounding more) instead of y = product
};

/// How a cache keeps its numbers: float, half float, or int8 with a scale for each key and each
/// value of a head.
enum class CacheType : std::uint8_t { f32, f16, q8 };

/// One key block of one group of query heads that share a key/value head. Keys stand side by side:
/// number d of key j at k[d * key_block + j]. All of k and v can be read, also beyond `keys`.
struct AttentionBlock {
    const float* q; ///< [heads][head_dim]
    CacheType type;
    const void* k;        ///< [head_dim][key_block]
    const void* v;        ///< [key_block][padded(head_dim)], zero-padded
    const float* k_scale; ///< [key_block], q8 only
    const float* v_scale; ///< [key_block], q8 only
    std::size_t heads;
    std::size_t keys; ///< 1..key_block
    std::size_t head_dim;
    float scale; ///< scores are dot * scale (q8: dot * k_scale * scale)
    bool first;  ///< the state counts nothing yet: it is set, where it would be joined
    /// What is read next, if anything: brought near meanwhile, as much as of k and v.
    const void *next_k, *next_v;
};

/// The softmax of each head over the keys of some blocks.
struct AttentionState {
    float* max; ///< [heads]
    float* sum; ///< [heads]
    float* out; ///< [heads][padded(head_dim)], not yet divided by sum
};

/// A head's numbers with the zeros that follow them.
constexpr std::size_t padded(std::size_t head_dim) noexcept {
    return (head_dim + lanes - 1) / lanes * lanes;
}

struct Kernels {
    const char* level;

    /// q = round-to-even(x * 127/max|x|), scale = max|x|/127, sum = sum of q, for each group; a
    /// group whose maximum is so small that 127/max overflows becomes zeros with scale 0. n is a
    /// multiple of group.
    void (*quantize)(const float* x, std::size_t n, std::int8_t* q, float* scale,
                     std::int32_t* sum) noexcept;

    /// Rows [begin, end) of y = W x for every token. Weights [rows][x.cols], row-major, where they
    /// are mapped. `scratch` holds matmul_scratch(x.cols) bytes, 64-byte aligned, one per thread.
    void (*matmul_f32)(const float* w, std::size_t begin, std::size_t end, const FloatRows& x,
                       const Target& target, void* scratch) noexcept;
    /// q8: acc = fma(float(dot_g), xscale_g, acc) over the groups, y = acc * scale[row].
    void (*matmul_q8)(const std::int8_t* w, const float* scale, std::size_t begin, std::size_t end,
                      const QuantizedRows& x, const Target& target, void* scratch) noexcept;
    /// q4: acc = fma(float(dot_g), scale[row][g] * xscale_g, acc), y = acc. Nibbles as in
    /// docs/format-2.md.
    void (*matmul_q4)(const std::uint8_t* w, const float* scale, std::size_t begin, std::size_t end,
                      const QuantizedRows& x, const Target& target, void* scratch) noexcept;

    /// y = (x * 1/sqrt(mean(x^2) + eps)) * w; n a multiple of lanes; y may be x.
    void (*rmsnorm)(const float* x, const float* w, std::size_t n, float eps, float* y) noexcept;
    /// Rotates the pairs (2i, 2i+1) of a head: cos_sin holds cos and sin of each pair,
    /// [head_dim/2][2].
    void (*rope)(float* head, std::size_t head_dim, const float* cos_sin) noexcept;
    /// y = gate / (1 + exp(-gate)) * up; n a multiple of lanes; y may be gate.
    void (*swiglu)(const float* gate, const float* up, std::size_t n, float* y) noexcept;

    /// Puts n numbers into a cache, `stride` elements apart, and returns their scale (q8; else 1).
    /// f16: rounded to even, at most 65504. q8: round-to-even(x * 127/max|x|), as `quantize`.
    float (*cache_put)(const float* x, std::size_t n, CacheType type, void* y,
                       std::size_t stride) noexcept;
    /// The softmax of one block; joined with that of the blocks before as by attend_merge.
    void (*attend)(const AttentionBlock& block, const AttentionState& state) noexcept;
    /// Joins the softmax of the blocks before (state) with that of the next one.
    void (*attend_merge)(const AttentionState& state, const AttentionState& next, std::size_t heads,
                         std::size_t head_dim) noexcept;
    /// y[heads][head_dim] = out / sum; y may be out.
    void (*attend_finish)(const AttentionState& state, std::size_t heads, std::size_t head_dim,
                          float* y) noexcept;

    /// y = exp((x - max x) * scale), returns the sum of y; any n; y may be x.
    float (*softmax)(const float* x, std::size_t n, float scale, float* y) noexcept;
    /// exp of each x: 3e-7 relative over [-87, 88], 0 below -87.33, saturated above 88.3. n a
    /// multiple of lanes.
    void (*exp)(const float* x, std::size_t n, float* y) noexcept;
    /// Index of the first maximum; n at least 1, no NaN.
    std::size_t (*argmax)(const float* x, std::size_t n) noexcept;

    /// Among the candidates for 1/scale of a group w that for which (sum wq)^2 / sum q^2 is largest
    /// (the first of equals), q = round-to-even(w * inverse) in [-8, 7]; and scale = sum wq / sum
    /// q^2. Sums keep four lanes and end as (0 + 1) + (2 + 3). `first` is the first of the weights
    /// of largest magnitude `max`, which is neither zero nor so small or large that a square is not
    /// a normal number.
    void (*fit_q4)(const float* w, float first, float max, float* inverse, float* scale) noexcept;

    /// For measuring a machine: the sum of n words, n a multiple of 64, by the widest plain reads.
    std::uint64_t (*sum_words)(const std::uint64_t* words, std::size_t n) noexcept;
    /// For measuring a machine: at least `count` multiply-adds by the instruction that the products
    /// use, on registers alone; returns how many it did.
    std::uint64_t (*dot_loop)(std::uint64_t count) noexcept;
};

} // namespace mnm::kernels
