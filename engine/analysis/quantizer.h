// SPDX-License-Identifier: MIT
// Quantisers as pure functions: symmetric uniform grids with a scale per tensor, row, column or
// group, and fixed-point grids. docs/rate-distortion.md gives the definitions.
//
// Header only and without includes of ours, so that a trainer can call them too. T is float or
// double; with double every step is in double. Nothing here throws but std::bad_alloc.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mnm {

/// Which weights share a scale. A matrix is row-major [rows][cols]; a group is `group` consecutive
/// columns of one row, the last one of a row being shorter where `group` does not divide cols.
struct Granularity {
    enum class Kind { tensor, row, column, group };
    Kind kind = Kind::tensor;
    std::size_t group = 0; ///< Kind::group only, at least 1

    static Granularity tensor() { return {Kind::tensor, 0}; }
    static Granularity row() { return {Kind::row, 0}; }
    static Granularity column() { return {Kind::column, 0}; }
    static Granularity groups_of(std::size_t size) { return {Kind::group, size}; }

    std::string name() const {
        switch (kind) {
        case Kind::tensor:
            return "per tensor";
        case Kind::row:
            return "per row";
        case Kind::column:
            return "per column";
        default:
            return "group of " + std::to_string(group);
        }
    }
    std::size_t groups_in_row(std::size_t cols) const { return (cols + group - 1) / group; }
    /// Number of scales.
    std::size_t scales(std::size_t rows, std::size_t cols) const {
        switch (kind) {
        case Kind::tensor:
            return 1;
        case Kind::row:
            return rows;
        case Kind::column:
            return cols;
        default:
            return rows * groups_in_row(cols);
        }
    }
    /// The scale of the weight at (row, col).
    std::size_t index(std::size_t row, std::size_t col, std::size_t cols) const {
        switch (kind) {
        case Kind::tensor:
            return 0;
        case Kind::row:
            return row;
        case Kind::column:
            return col;
        default:
            return row * groups_in_row(cols) + col / group;
        }
    }

    friend bool operator==(const Granularity&, const Granularity&) = default;
};

/// Symmetric uniform: the integers -q_max..q_max, q_max = 2^(bits-1) - 1, times a scale.
struct UniformQuantizer {
    int bits = 8; ///< 2..16
    Granularity granularity;

    int q_max() const { return (1 << (bits - 1)) - 1; }
    /// Stored bits of a matrix: `bits` a weight, 32 a scale.
    double stored_bits(std::size_t rows, std::size_t cols) const {
        return static_cast<double>(bits) * static_cast<double>(rows) * static_cast<double>(cols) +
               32.0 * static_cast<double>(granularity.scales(rows, cols));
    }
};

/// clip(round(x / scale), +-q_max), halves away from zero; 0 where the scale is 0. x is finite.
template <class T>
std::int32_t quantize_value(T x, T scale, std::int32_t q_max) {
    if (!(scale > T{0})) return 0;
    // q_max is whole, so clipping first changes nothing; the conversion is exact below 2^24.
    const T magnitude = std::min(std::fabs(x) / scale, static_cast<T>(q_max));
    auto q = static_cast<std::int32_t>(magnitude);
    q += magnitude - static_cast<T>(q) >= T{0.5} ? 1 : 0;
    return x < T{0} ? -q : q;
}

/// max|w| of each scale's weights divided by q_max, in the order of Granularity::index.
template <class T>
std::vector<T> uniform_scales(std::span<const T> w, std::size_t rows, std::size_t cols,
                              const UniformQuantizer& quantizer) {
    assert(w.size() == rows * cols && quantizer.bits >= 2 && quantizer.bits <= 16);
    const Granularity& by = quantizer.granularity;
    std::vector<T> scales(by.scales(rows, cols), T{0});
    const std::size_t run = by.kind == Granularity::Kind::column  ? 1
                            : by.kind == Granularity::Kind::group ? by.group
                                                                  : cols;
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < cols; c += run) {
            T& largest = scales[by.index(r, c, cols)];
            const std::size_t end = std::min(c + run, cols);
            for (std::size_t i = r * cols + c; i < r * cols + end; ++i)
                largest = std::max(largest, std::fabs(w[i]));
        }
    }
    for (T& scale : scales)
        scale /= static_cast<T>(quantizer.q_max());
    return scales;
}

/// What the weights become: scale * q, with the given scales. `out` may be `w`.
template <class T>
void fake_quantize(std::span<const T> w, std::size_t rows, std::size_t cols,
                   const UniformQuantizer& quantizer, std::span<const T> scales, std::span<T> out) {
    assert(w.size() == rows * cols && out.size() == w.size());
    const Granularity& by = quantizer.granularity;
    const std::int32_t q_max = quantizer.q_max();
    const std::size_t run = by.kind == Granularity::Kind::column  ? 1
                            : by.kind == Granularity::Kind::group ? by.group
                                                                  : cols;
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < cols; c += run) {
            const T scale = scales[by.index(r, c, cols)];
            const std::size_t end = std::min(c + run, cols);
            for (std::size_t i = r * cols + c; i < r * cols + end; ++i)
                out[i] = scale * static_cast<T>(quantize_value(w[i], scale, q_max));
        }
    }
}

/// The same with the scales of the weights themselves.
template <class T>
void fake_quantize(std::span<const T> w, std::size_t rows, std::size_t cols,
                   const UniformQuantizer& quantizer, std::span<T> out) {
    const std::vector<T> scales = uniform_scales(w, rows, cols, quantizer);
    fake_quantize(w, rows, cols, quantizer, std::span<const T>(scales), out);
}

/// What happens to an integer that its word cannot hold.
enum class Overflow { saturate, wrap };
enum class Rounding { nearest, floor };

/// A fixed-point grid Qi.f: 1 + i + f bits, a sign among them; step 2^-f, range -2^i to
/// 2^i - 2^-f. Nearest rounds halves away from zero.
struct FixedPoint {
    int integer_bits = 0;  ///< i
    int fraction_bits = 7; ///< f; i + f is 1..30
    Rounding rounding = Rounding::nearest;
    Overflow overflow = Overflow::saturate;

    int word() const { return 1 + integer_bits + fraction_bits; }
    double step() const { return std::ldexp(1.0, -fraction_bits); }
    std::string name() const {
        std::string text = "Q";
        text += std::to_string(integer_bits);
        text += '.';
        return text += std::to_string(fraction_bits);
    }
};

/// A whole number brought into a two's complement word of `word` bits.
inline double into_word(double q, int word, Overflow overflow) {
    const double half = std::ldexp(1.0, word - 1), whole = 2 * half;
    if (overflow == Overflow::saturate) return std::clamp(q, -half, half - 1);
    return q - whole * std::floor((q + half) / whole);
}

/// The grid value that x becomes. x is finite. `overflowed`, where given, is set when the word
/// could not hold it.
inline double fixed_point(double x, const FixedPoint& grid, bool* overflowed = nullptr) {
    const double exact = std::ldexp(x, grid.fraction_bits);
    const double q = grid.rounding == Rounding::nearest ? std::round(exact) : std::floor(exact);
    const double held = into_word(q, grid.word(), grid.overflow);
    if (overflowed != nullptr) *overflowed = held != q;
    return std::ldexp(held, -grid.fraction_bits);
}

/// Quantised with a scale that does not fit x any more (a stale one): the integer that a two's
/// complement word of `bits` holds.
inline double stale_quantize(double x, double scale, int bits, Overflow overflow) {
    return into_word(std::round(x / scale), bits, overflow);
}

} // namespace mnm
