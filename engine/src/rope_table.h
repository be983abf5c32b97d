// SPDX-License-Identifier: MIT
// Cosines and sines of the rotary embedding, computed without libm so that they are the same
// everywhere.
#pragma once

#include "formats/model_config.h"

#include <cstddef>
#include <vector>

namespace mnm {

/// Rows of cos and sin for positions 0, 1, ..., computed once each, when first asked for.
class RopeTable {
  public:
    explicit RopeTable(const ModelConfig& config);
    /// Makes rows [0, positions) available; not to be called while rows are in use.
    void extend(std::size_t positions);
    /// [head_dim / 2][2]: cos and sin of each pair's angle, position * frequency, rounded from
    /// double.
    const float* row(std::size_t position) const { return &table_[position * head_dim_]; }

  private:
    std::size_t head_dim_;
    std::vector<double> frequencies_; ///< [head_dim / 2]
    std::vector<float> table_;        ///< [positions][head_dim]
};

/// Exposed for tests: sine and cosine of angle >= 0 up to 2^20, and base^exponent for base > 0.
struct SinCos {
    double sin, cos;
};
SinCos portable_sincos(double angle);
double portable_pow(double base, double exponent);

} // namespace mnm
