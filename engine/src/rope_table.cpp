// SPDX-License-Identifier: MIT
// Series in double with additions, multiplications and divisions only: IEEE 754 fixes each bit. The
// errors (about 1e-15) vanish when the result is rounded to float.
#include "engine/src/rope_table.h"

#include <cmath>
#include <cstdint>
#include <numbers>

namespace mnm {

SinCos portable_sincos(double angle) {
    // pi/2 in three parts; the first two have 33 bits, so their products with quadrant are exact.
    constexpr double half_pi_1 = 1.57079632673412561417e+00;
    constexpr double half_pi_2 = 6.07710050630396597660e-11;
    constexpr double half_pi_3 = 2.02226624879595063154e-21;
    const auto quadrant = static_cast<std::int64_t>(angle * (2 / std::numbers::pi) + 0.5);
    const auto k = static_cast<double>(quadrant);
    const double r = ((angle - k * half_pi_1) - k * half_pi_2) - k * half_pi_3;

    const double square = r * r;
    double sine = 0, cosine = 0; // Taylor, |r| <= pi/4: the next term is below 1e-18
    for (int term = 19; term >= 3; term -= 2) {
        sine = (1 - sine) * (square / ((term - 1) * term));
        cosine = (1 - cosine) * (square / ((term - 1) * (term - 2)));
    }
    sine = r * (1 - sine);
    cosine = 1 - cosine;
    switch (quadrant & 3) {
    case 0:
        return {sine, cosine};
    case 1:
        return {cosine, -sine};
    case 2:
        return {-sine, -cosine};
    default:
        return {-cosine, sine};
    }
}

double portable_pow(double base, double exponent) {
    int power = 0;
    double mantissa = std::frexp(base, &power); // exact
    if (mantissa < std::numbers::sqrt2 / 2) {
        mantissa *= 2;
        --power;
    }
    const double s = (mantissa - 1) / (mantissa + 1), square = s * s;
    double series = 0; // ln m = 2 (s + s^3/3 + s^5/5 + ...), |s| <= 0.172
    for (int term = 25; term >= 1; term -= 2)
        series = series * square + 1.0 / term;
    const double log_base = power * std::numbers::ln2 + 2 * s * series;

    const double x = exponent * log_base;
    const double n = std::floor(x / std::numbers::ln2 + 0.5);
    // ln 2 in two parts, the first short enough for an exact product.
    const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double exponential = 1; // Taylor, |r| <= 0.35
    for (int term = 18; term >= 1; --term)
        exponential = 1 + exponential * r / term;
    return std::ldexp(exponential, static_cast<int>(n)); // exact
}

namespace {

/// The stretching that Llama 3.1 published: low frequencies divided by factor, high ones kept, a
/// linear blend by wavelength between.
double llama3_frequency(double frequency, const RopeScaling& scaling) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    const auto context = static_cast<double>(scaling.original_context);
    if (wavelength < context / scaling.high_freq_factor) return frequency;
    if (wavelength > context / scaling.low_freq_factor) return frequency / scaling.factor;
    const double smooth = (context / wavelength - scaling.low_freq_factor) /
                          (scaling.high_freq_factor - scaling.low_freq_factor);
    return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

} // namespace

RopeTable::RopeTable(const ModelConfig& config) : head_dim_(config.head_dim) {
    for (std::size_t i = 0; i < head_dim_; i += 2) {
        double frequency = portable_pow(config.rope_base,
                                        -static_cast<double>(i) / static_cast<double>(head_dim_));
        switch (config.rope_scaling.type) {
        case RopeScaling::Type::none:
            break;
        case RopeScaling::Type::linear:
            frequency /= config.rope_scaling.factor;
            break;
        case RopeScaling::Type::llama3:
            frequency = llama3_frequency(frequency, config.rope_scaling);
            break;
        }
        frequencies_.push_back(frequency);
    }
}

void RopeTable::extend(std::size_t positions) {
    const std::size_t known = table_.size() / head_dim_;
    if (positions <= known) return;
    table_.reserve(positions * head_dim_);
    for (std::size_t position = known; position < positions; ++position) {
        for (const double frequency : frequencies_) {
            const SinCos turn = portable_sincos(static_cast<double>(position) * frequency);
            table_.push_back(static_cast<float>(turn.cos));
            table_.push_back(static_cast<float>(turn.sin));
        }
    }
}

} // namespace mnm
