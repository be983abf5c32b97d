// SPDX-License-Identifier: MIT
// Looking into a forward pass, and changing what flows through it: for studies, never for chats.
#pragma once

#include <cstddef>
#include <span>

namespace mnm {

/// Rows of floats inside the session, one per token of the batch: row t starts at t * stride.
struct ObservedRows {
    float* data;
    std::size_t count;
    std::size_t width;
    std::size_t stride;

    std::span<float> row(std::size_t t) const { return {data + t * stride, width}; }
};

/// Called on the thread that runs the session, between its parallel regions. An observer may write
/// to the rows: the pass goes on with what it leaves. Products with q8 and q4 matrices are the
/// exception, since their inputs are quantised before they can be seen.
class Observer {
  public:
    enum class Place {
        residual,        ///< the stream as it enters a layer; layer L: as it leaves the last one
        attention_input, ///< of q, k and v, after the norm
        output_input,    ///< of the attention's output matrix
        ffn_input,       ///< of gate and up, after the norm
        down_input,      ///< of down: silu(gate) * up
        head_input,      ///< after the final norm
        key,             ///< as written into the cache (rotated), once per key/value head
        value,           ///< likewise
        logits,
    };
    static constexpr std::size_t places = 9;

    virtual ~Observer() = default;
    /// `layer` is the number of layers for head_input and logits.
    virtual void see(Place place, std::size_t layer, const ObservedRows& rows) = 0;
};

} // namespace mnm
