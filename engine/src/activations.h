// SPDX-License-Identifier: MIT
// Buffers of the forward pass.
#pragma once

#include "engine/src/zeroed.h"
#include "kernels/table.h"

#include <cstddef>
#include <cstdint>

namespace mnm {

/// Running softmaxes of attention, each of the query heads that share a key/value head.
class AttentionStates {
  public:
    AttentionStates(std::size_t count, std::size_t heads, std::size_t head_dim)
        : heads_(heads), outs_(heads * kernels::padded(head_dim)),
          size_(kernels::padded(outs_ + 2 * heads)), floats_(count * size_) {}
    kernels::AttentionState at(std::size_t i) const {
        float* first = floats_.data() + i * size_;
        return {first + outs_, first + outs_ + heads_, first};
    }

  private:
    std::size_t heads_, outs_, size_;
    Floats floats_;
};

/// A vector per token, in float and, where a matrix needs it, quantised.
struct Activations {
    Activations(std::size_t tokens, std::size_t width)
        : cols(width), x(tokens * width), q(tokens * width), scale(tokens * width / kernels::group),
          sum(tokens * width / kernels::group) {}

    std::size_t cols;
    Floats x;                 ///< [tokens][cols]
    Zeroed<std::int8_t> q;    ///< [tokens][cols]
    Floats scale;             ///< [tokens][cols / group]
    Zeroed<std::int32_t> sum; ///< [tokens][cols / group]

    float* row(std::size_t token) { return x.data() + token * cols; }
};

} // namespace mnm
