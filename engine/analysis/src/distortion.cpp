// SPDX-License-Identifier: MIT
// Distances between quantised numbers and the original ones.
#include "engine/analysis/distortion.h"

#include <numeric>

namespace mnm {
namespace {

/// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks(std::span<const double> x) {
    std::vector<std::size_t> order(x.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
    std::vector<double> rank(x.size());
    for (std::size_t i = 0; i < order.size();) {
        std::size_t end = i + 1;
        while (end < order.size() && x[order[end]] == x[order[i]])
            ++end;
        for (std::size_t k = i; k < end; ++k)
            rank[order[k]] = static_cast<double>(i + 1 + end) / 2;
        i = end;
    }
    return rank;
}

} // namespace

double model_line_db(int bits, double crest) {
    return 6.02 * bits + model_intercept_db(crest);
}

double model_intercept_db(double crest) {
    return 4.77 - 20 * std::log10(crest);
}

double uniform_error_snr_db(double signal_power, double step) {
    return 10 * std::log10(12 * signal_power / (step * step));
}

std::vector<double> gained_db(std::span<const double> snr) {
    std::vector<double> gained;
    for (std::size_t i = 1; i < snr.size(); ++i)
        gained.push_back(snr[i] - snr[i - 1]);
    return gained;
}

void PooledErrors::add(double error) {
    ++count_;
    sum_ += error;
    squares_ += error * error;
    max_ = std::max(max_, std::fabs(error));
    const double place = (error + 0.5) * static_cast<double>(bins);
    const double last = static_cast<double>(bins - 1);
    ++histogram_[static_cast<std::size_t>(std::clamp(std::floor(place), 0.0, last))];
}

void PooledErrors::add(const PooledErrors& other) {
    count_ += other.count_;
    sum_ += other.sum_;
    squares_ += other.squares_;
    max_ = std::max(max_, other.max_);
    for (std::size_t i = 0; i < bins; ++i)
        histogram_[i] += other.histogram_[i];
}

double PooledErrors::mean() const {
    return sum_ / static_cast<double>(count_);
}

double PooledErrors::twelve_mean_square() const {
    return 12 * squares_ / static_cast<double>(count_);
}

double PooledErrors::twelve_variance() const {
    return twelve_mean_square() - 12 * mean() * mean();
}

double rank_correlation(std::span<const double> x, std::span<const double> y) {
    const std::vector<double> a = ranks(x), b = ranks(y);
    const double middle = (static_cast<double>(x.size()) + 1) / 2;
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - middle) * (b[i] - middle);
        aa += (a[i] - middle) * (a[i] - middle);
        bb += (b[i] - middle) * (b[i] - middle);
    }
    return ab / std::sqrt(aa * bb);
}

} // namespace mnm
