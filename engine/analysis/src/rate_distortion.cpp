// SPDX-License-Identifier: MIT
// Description lengths, and the knee of a curve.
#include "engine/analysis/rate_distortion.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace mnm {

double perplexity_of(double loss_nats) {
    return std::exp(loss_nats);
}

double raw_bits(double symbols, double alphabet) {
    return symbols * std::log2(alphabet);
}

DescriptionLength description_length(double weight_bits, double targets, double loss_nats) {
    return {weight_bits, targets * loss_nats / std::numbers::ln2};
}

std::optional<Knee> find_knee(std::span<const RatePoint> points, const KneeRule& rule) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (std::isfinite(points[i].kl_bits)) order.push_back(i);
    std::set<double> rates;
    for (const std::size_t i : order)
        rates.insert(points[i].bits_per_weight);
    if (rates.size() < 3) return {};
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (points[a].bits_per_weight != points[b].bits_per_weight)
            return points[a].bits_per_weight < points[b].bits_per_weight;
        return points[a].kl_bits < points[b].kl_bits;
    });
    Knee knee;
    knee.floor = points[order.front()].kl_bits;
    for (const std::size_t i : order)
        knee.floor = std::min(knee.floor, points[i].kl_bits);
    knee.floor = std::max(knee.floor, rule.least_floor);
    for (const std::size_t i : order) {
        knee.index = i;
        if (points[i].kl_bits <= rule.factor * knee.floor) break;
        const bool same_rate =
            knee.before && points[*knee.before].bits_per_weight == points[i].bits_per_weight;
        if (!same_rate) knee.before = i; // the best of its rate comes first
    }
    return knee;
}

} // namespace mnm
