// SPDX-License-Identifier: MIT
// Rate against distortion: description lengths, and the knee of a curve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mnm {

/// exp(loss).
double perplexity_of(double loss_nats);
/// Bits that `symbols` symbols of an alphabet take without any model: symbols * log2(alphabet).
double raw_bits(double symbols, double alphabet);

/// A two-part code: the weights, then the corpus with their help.
struct DescriptionLength {
    double weights = 0; ///< bits
    double corpus = 0;  ///< bits: targets * loss / ln 2
    double total() const { return weights + corpus; }
};
DescriptionLength description_length(double weight_bits, double targets, double loss_nats);

/// One quantised model: what it takes and what it loses.
struct RatePoint {
    std::string name;
    int bits = 0;               ///< of the integers; 0 for a weight type that is no uniform grid
    double bits_per_weight = 0; ///< stored bits (scales, norms and all) over parameters
    double loss_nats = 0;
    double perplexity = 0;
    double kl_bits = 0; ///< mean over the targets
    double top1_agreement = 0;
    DescriptionLength length;
};

/// The knee is the smallest rate whose KL is at most `factor` times the floor; the floor is the
/// least KL of the curve, but no less than `least_floor`: nobody pays bits for a divergence below
/// that.
struct KneeRule {
    double factor = 10;
    double least_floor = 0.001; ///< bits a token
};
struct Knee {
    std::size_t index = 0; ///< of the point
    double floor = 0;      ///< bits a token
    /// The next smaller rate, whose KL is beyond the threshold: the curve bends between the two.
    std::optional<std::size_t> before;
};
/// Points in any order; those whose KL is not finite are passed over. None for a curve of fewer
/// than three rates: two points bend nowhere.
std::optional<Knee> find_knee(std::span<const RatePoint> points, const KneeRule& rule);

} // namespace mnm
