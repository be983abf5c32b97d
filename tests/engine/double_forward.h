// SPDX-License-Identifier: MIT
// The model once more, in double and plain loops, written from its formulas: the engine's
// independent check.
#pragma once

#include "formats/model_file.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mnm::tests {

using Vector = std::vector<double>;

class DoubleModel {
  public:
    explicit DoubleModel(const ModelFile& file) : c_(file.details.config) {
        for (const TensorView& tensor : file.tensors) {
            std::vector<float> values(tensor.rows * tensor.cols);
            tensor.codec->decode(tensor.data, tensor.scales, tensor.rows, tensor.cols,
                                 values.data());
            weights_[tensor.name] = values;
        }
    }

    /// Logits after every token, from an empty cache.
    std::vector<Vector> logits(const std::vector<std::uint32_t>& ids) const {
        std::vector<Vector> stream;
        for (const std::uint32_t id : ids) {
            Vector x(c_.width);
            for (std::size_t i = 0; i < c_.width; ++i) {
                x[i] = weights_.at("token_embd.weight")[id * c_.width + i];
            }
            stream.push_back(x);
        }
        for (std::uint64_t layer = 0; layer < c_.layers; ++layer)
            block(stream, layer);
        std::vector<Vector> out;
        const std::string head = c_.tied_head ? "token_embd.weight" : "output.weight";
        for (const Vector& x : stream)
            out.push_back(times(head, norm("output_norm.weight", x)));
        return out;
    }

  private:
    Vector norm(const std::string& name, const Vector& x) const {
        double squares = 0;
        for (const double v : x)
            squares += v * v;
        const double root = std::sqrt(squares / static_cast<double>(x.size()) + c_.norm_eps);
        Vector y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
            y[i] = x[i] / root * weights_.at(name)[i];
        return y;
    }

    Vector times(const std::string& name, const Vector& x) const {
        const std::vector<float>& w = weights_.at(name);
        Vector y(w.size() / x.size());
        for (std::size_t r = 0; r < y.size(); ++r) {
            for (std::size_t i = 0; i < x.size(); ++i)
                y[r] += w[r * x.size() + i] * x[i];
        }
        return y;
    }

    /// Rotates `heads` heads that start at `first`.
    void rotate(Vector& x, std::size_t first, std::size_t heads, std::size_t position) const {
        for (std::size_t h = 0; h < heads; ++h) {
            for (std::size_t i = 0; i < c_.head_dim; i += 2) {
                double& a = x[first + h * c_.head_dim + i];
                double& b = x[first + h * c_.head_dim + i + 1];
                const double angle = static_cast<double>(position) *
                                     std::pow(c_.rope_base, -static_cast<double>(i) /
                                                                static_cast<double>(c_.head_dim));
                const double turned = a * std::cos(angle) - b * std::sin(angle);
                b = a * std::sin(angle) + b * std::cos(angle);
                a = turned;
            }
        }
    }

    void block(std::vector<Vector>& stream, std::uint64_t layer) const {
        const std::string prefix = "blk." + std::to_string(layer) + ".";
        std::vector<Vector> qkv;
        for (std::size_t t = 0; t < stream.size(); ++t) {
            Vector row =
                times(prefix + "attn_qkv.weight", norm(prefix + "attn_norm.weight", stream[t]));
            rotate(row, 0, c_.heads + c_.kv_heads, t);
            qkv.push_back(row);
        }
        for (std::size_t t = 0; t < stream.size(); ++t) {
            add(stream[t], times(prefix + "attn_output.weight", attention(qkv, t)));
            const Vector both =
                times(prefix + "ffn_gate_up.weight", norm(prefix + "ffn_norm.weight", stream[t]));
            Vector inner(c_.ffn);
            for (std::size_t i = 0; i < c_.ffn; ++i) {
                inner[i] = both[i] / (1 + std::exp(-both[i])) * both[c_.ffn + i];
            }
            add(stream[t], times(prefix + "ffn_down.weight", inner));
        }
    }

    Vector attention(const std::vector<Vector>& qkv, std::size_t t) const {
        Vector out(c_.q_rows());
        for (std::size_t h = 0; h < c_.heads; ++h) {
            const std::size_t kv = h / (c_.heads / c_.kv_heads) * c_.head_dim;
            const std::size_t q = h * c_.head_dim, k = c_.q_rows() + kv;
            const std::size_t v = c_.q_rows() + c_.kv_rows() + kv;
            Vector p(t + 1);
            double sum = 0;
            for (std::size_t j = 0; j <= t; ++j) {
                double score = 0;
                for (std::size_t d = 0; d < c_.head_dim; ++d)
                    score += qkv[t][q + d] * qkv[j][k + d];
                p[j] = std::exp(score / std::sqrt(static_cast<double>(c_.head_dim)));
                sum += p[j];
            }
            for (std::size_t j = 0; j <= t; ++j) {
                for (std::size_t d = 0; d < c_.head_dim; ++d)
                    out[q + d] += p[j] / sum * qkv[j][v + d];
            }
        }
        return out;
    }

    static void add(Vector& x, const Vector& y) {
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] += y[i];
    }

    ModelConfig c_;
    std::map<std::string, std::vector<float>> weights_;
};

} // namespace mnm::tests
