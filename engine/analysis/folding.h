// SPDX-License-Identifier: MIT
// Moving scales between neighbouring matrices without changing what a Llama-style model computes
// (but for the rounding of float). Formulas: docs/rate-distortion.md.
#pragma once

#include "engine/analysis/weight_set.h"

#include <cstddef>
#include <span>
#include <vector>

namespace mnm {

/// The largest magnitude of each channel of the inputs of a layer's products.
struct LayerInputs {
    std::vector<float> attention; ///< [D], of q, k and v
    std::vector<float> output;    ///< [QD], of the attention's output
    std::vector<float> ffn;       ///< [D], of gate and up
    std::vector<float> down;      ///< [F], of down
};

/// SmoothQuant's scale at alpha = 1/2: sqrt(largest input / largest weight) of each channel; 1
/// where either is 0.
std::vector<float> smoothing(std::span<const float> inputs, std::span<const float> weights);

/// Norm weights go into q, k and v, gate and up; the norms become 1 (a weight of 0 stays).
void fold_norms(WeightSet& weights);
/// norm / s, and the columns of q, k, v (gate, up) times s, so that inputs and weights of a channel
/// are of one size.
void smooth_norms(WeightSet& weights, std::span<const LayerInputs> inputs);
/// Rows of up / s, columns of down * s: the product with silu(gate) is linear in up.
void smooth_ffn(WeightSet& weights, std::span<const LayerInputs> inputs);
/// Rows of v / s, columns of o * s; the query heads that share a value head share its s.
void smooth_values(WeightSet& weights, std::span<const LayerInputs> inputs);

} // namespace mnm
