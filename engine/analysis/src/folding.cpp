// SPDX-License-Identifier: MIT
// Moving scales between neighbouring matrices.
#include "engine/analysis/folding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mnm {
namespace {

/// A stored matrix, row-major [size / cols][cols].
struct Block {
    std::span<float> values;
    std::size_t cols;

    std::size_t rows() const { return values.size() / cols; }
    std::vector<float> column_maxima() const {
        std::vector<float> largest(cols);
        for (std::size_t i = 0; i < values.size(); ++i)
            largest[i % cols] = std::max(largest[i % cols], std::fabs(values[i]));
        return largest;
    }
    void scale_columns(std::span<const float> s) const {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] *= s[i % cols];
    }
    void divide_rows(std::size_t first, std::span<const float> s) const {
        for (std::size_t r = 0; r < s.size(); ++r)
            for (std::size_t c = 0; c < cols; ++c)
                values[(first + r) * cols + c] /= s[r];
    }
};

Block block(WeightSet& weights, std::size_t layer, const char* name, std::size_t cols) {
    return {weights.tensor(fmt::format("blk.{}.{}.weight", layer, name)), cols};
}

/// Columns of `matrix` times s, its norm divided by it.
void move_into(WeightSet& weights, std::size_t layer, const char* norm, const Block& matrix,
               std::span<const float> s) {
    const std::span<float> n = weights.tensor(fmt::format("blk.{}.{}.weight", layer, norm));
    for (std::size_t i = 0; i < n.size(); ++i)
        n[i] /= s[i];
    matrix.scale_columns(s);
}

} // namespace

std::vector<float> smoothing(std::span<const float> inputs, std::span<const float> weights) {
    std::vector<float> s(inputs.size(), 1.0f);
    for (std::size_t i = 0; i < s.size(); ++i) {
        const float ratio = std::sqrt(inputs[i] / weights[i]);
        if (inputs[i] > 0 && weights[i] > 0 && std::isnormal(ratio)) s[i] = ratio;
    }
    return s;
}

void fold_norms(WeightSet& weights) {
    const ModelConfig& c = weights.model().config();
    for (std::size_t layer = 0; layer < c.layers; ++layer) {
        for (const auto& [norm, matrix] :
             {std::pair{"attn_norm", "attn_qkv"}, std::pair{"ffn_norm", "ffn_gate_up"}}) {
            std::vector<float> s;
            for (const float w : weights.tensor(fmt::format("blk.{}.{}.weight", layer, norm)))
                s.push_back(w != 0 ? w : 1.0f);
            move_into(weights, layer, norm, block(weights, layer, matrix, c.width), s);
        }
    }
}

void smooth_norms(WeightSet& weights, std::span<const LayerInputs> inputs) {
    const std::size_t width = weights.model().config().width;
    for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
        const Block qkv = block(weights, layer, "attn_qkv", width);
        move_into(weights, layer, "attn_norm", qkv,
                  smoothing(inputs[layer].attention, qkv.column_maxima()));
        const Block gate_up = block(weights, layer, "ffn_gate_up", width);
        move_into(weights, layer, "ffn_norm", gate_up,
                  smoothing(inputs[layer].ffn, gate_up.column_maxima()));
    }
}

void smooth_ffn(WeightSet& weights, std::span<const LayerInputs> inputs) {
    const ModelConfig& c = weights.model().config();
    for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
        const Block down = block(weights, layer, "ffn_down", c.ffn);
        const std::vector<float> s = smoothing(inputs[layer].down, down.column_maxima());
        down.scale_columns(s);
        block(weights, layer, "ffn_gate_up", c.width).divide_rows(c.ffn, s);
    }
}

void smooth_values(WeightSet& weights, std::span<const LayerInputs> inputs) {
    const ModelConfig& c = weights.model().config();
    const std::size_t group = c.heads / c.kv_heads;
    for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
        const Block output = block(weights, layer, "attn_output", c.q_rows());
        const std::vector<float> columns = output.column_maxima();
        // One value channel feeds a column of each query head of its group.
        std::vector<float> input(c.kv_rows()), weight(c.kv_rows());
        const auto value_channel = [&](std::size_t column) {
            return column / c.head_dim / group * c.head_dim + column % c.head_dim;
        };
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const std::size_t v = value_channel(i);
            input[v] = std::max(input[v], inputs[layer].output[i]);
            weight[v] = std::max(weight[v], columns[i]);
        }
        const std::vector<float> s = smoothing(input, weight);
        std::vector<float> wide(columns.size());
        for (std::size_t i = 0; i < wide.size(); ++i)
            wide[i] = s[value_channel(i)];
        output.scale_columns(wide);
        block(weights, layer, "attn_qkv", c.width).divide_rows(c.q_rows() + c.kv_rows(), s);
    }
}

} // namespace mnm
