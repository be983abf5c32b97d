// SPDX-License-Identifier: MIT
// What logits say: losses and divergences, summed in double. Reports, not inputs: they use libm.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

namespace mnm {

/// log of the sum of exp(x), computed around the maximum. x is not empty.
template <class T>
double log_sum_exp(std::span<const T> x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const T v : x)
        sum += std::exp(v - top);
    return top + std::log(sum);
}

/// The loss of one position in nats: -log softmax(x)[target].
template <class T>
double loss_nats(std::span<const T> x, std::size_t target) {
    return log_sum_exp(x) - x[target];
}

/// KL(p || q) in bits from the logits of both and their log_sum_exp.
template <class T>
double divergence_bits(std::span<const T> p, double p_log_sum, std::span<const T> q,
                       double q_log_sum) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        const double log_p = p[i] - p_log_sum;
        sum += std::exp(log_p) * (log_p - (q[i] - q_log_sum));
    }
    return sum / std::numbers::ln2;
}

template <class T>
double divergence_bits(std::span<const T> p, std::span<const T> q) {
    return divergence_bits(p, log_sum_exp(p), q, log_sum_exp(q));
}

} // namespace mnm
