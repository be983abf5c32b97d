// SPDX-License-Identifier: MIT
// Buffers of the forward pass.
#pragma once

#include "kernels/table.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace mnm {

/// Zeroed floats at a cache line, from the system's untouched pages when large.
class Floats {
  public:
    explicit Floats(std::size_t count)
        : count_(count),
          base_(static_cast<std::byte*>(std::calloc(count * sizeof(float) + 64, 1))) {
        if (base_ == nullptr) throw std::bad_alloc();
        const auto address = reinterpret_cast<std::uintptr_t>(base_);
        data_ = reinterpret_cast<float*>(base_ + (64 - address % 64) % 64);
    }
    Floats(const Floats&) = delete;
    Floats& operator=(const Floats&) = delete;
    ~Floats() { std::free(base_); }
    float* data() const { return data_; }
    std::size_t count() const { return count_; }

  private:
    std::size_t count_;
    std::byte* base_;
    float* data_;
};

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
    Floats x;                      ///< [tokens][cols]
    std::vector<std::int8_t> q;    ///< [tokens][cols]
    std::vector<float> scale;      ///< [tokens][cols / group]
    std::vector<std::int32_t> sum; ///< [tokens][cols / group]

    float* row(std::size_t token) { return x.data() + token * cols; }
};

} // namespace mnm
