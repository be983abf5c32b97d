// SPDX-License-Identifier: MIT
// How far quantised numbers lie from the original ones: SNR, crest factor, the model line, errors
// in steps. Formulas: docs/rate-distortion.md.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mnm {

/// Running sums of w^2 and (w - v)^2, for data that come in pieces.
struct SignalAndNoise {
    double signal = 0;
    double noise = 0;

    template <class T>
    void add(std::span<const T> original, std::span<const T> approximation) {
        for (std::size_t i = 0; i < original.size(); ++i) {
            const double w = original[i], e = w - static_cast<double>(approximation[i]);
            signal += w * w;
            noise += e * e;
        }
    }
    void add(const SignalAndNoise& other) {
        signal += other.signal;
        noise += other.noise;
    }
    /// 10 log10(signal / noise): +infinity without noise, NaN without either.
    double snr_db() const { return 10 * std::log10(signal / noise); }
};

template <class T>
double snr_db(std::span<const T> original, std::span<const T> approximation) {
    SignalAndNoise sums;
    sums.add(original, approximation);
    return sums.snr_db();
}

/// Largest magnitude and root of the mean square.
struct Magnitudes {
    double max = 0;
    double rms = 0;
    /// max / rms; NaN where everything is 0.
    double crest() const { return max / rms; }
};

template <class T>
Magnitudes magnitudes(std::span<const T> w) {
    Magnitudes m;
    double squares = 0;
    for (const T v : w) {
        const double x = v;
        m.max = std::max(m.max, std::fabs(x));
        squares += x * x;
    }
    m.rms = std::sqrt(squares / static_cast<double>(w.size()));
    return m;
}

/// The SNR that a uniform error gives a symmetric quantiser of b bits over a signal of crest factor
/// c: 6.02 b + 4.77 - 20 log10(c) dB (a step of 2 max / 2^b, an error variance of step^2 / 12). The
/// two rounded constants are the published ones.
double model_line_db(int bits, double crest);
/// The line's value at 0 bits.
double model_intercept_db(double crest);
/// The same from signal power and step: 10 log10(12 signal_power / step^2).
double uniform_error_snr_db(double signal_power, double step);

/// dB won by each bit: snr[i + 1] - snr[i].
std::vector<double> gained_db(std::span<const double> snr);

/// Errors in units of their step, (original - approximation) / scale, of any number of tensors.
class PooledErrors {
  public:
    static constexpr std::size_t bins = 20; ///< equal ones over [-0.5, 0.5]

    /// An error outside the histogram (a clipped weight) counts in the outermost bin.
    void add(double error);
    void add(const PooledErrors& other);

    std::uint64_t count() const { return count_; }
    double mean() const;
    /// 12 times the mean square: 1 for errors spread evenly over a step.
    double twelve_mean_square() const;
    /// 12 times the variance: the same with the mean taken away.
    double twelve_variance() const;
    /// The largest magnitude.
    double max() const { return max_; }
    const std::array<std::uint64_t, bins>& histogram() const { return histogram_; }

  private:
    std::uint64_t count_ = 0;
    double sum_ = 0;
    double squares_ = 0;
    double max_ = 0;
    std::array<std::uint64_t, bins> histogram_{};
};

/// Spearman's rank correlation (ties get the mean of their ranks): 1 where both rise together. NaN
/// for fewer than two values or where all of one side are equal.
double rank_correlation(std::span<const double> x, std::span<const double> y);

} // namespace mnm
