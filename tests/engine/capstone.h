// SPDX-License-Identifier: MIT
// The lesson's 300-parameter transformer in double: one block, one head, LayerNorm, tanh-GELU, a
// position table, matrices [in][out].
#pragma once

#include "tests/fixtures.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace mnm::tests {

/// Row-major.
struct DoubleMatrix {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::vector<double> values;

    std::span<const double> all() const { return values; }
    std::span<const double> row(std::size_t r) const { return all().subspan(r * cols, cols); }
    double at(std::size_t r, std::size_t c) const { return values[r * cols + c]; }
};

inline DoubleMatrix matrix_of(const nlohmann::json& json) {
    DoubleMatrix m;
    m.rows = json.size();
    for (const auto& row : json) {
        m.cols = row.size();
        for (const auto& value : row)
            m.values.push_back(value.get<double>());
    }
    return m;
}

inline std::string capstone_path() {
    return fixtures_root() + "/capstone.json";
}

class Capstone {
  public:
    /// The matrices in the lesson's order.
    static const std::vector<std::string>& names() {
        static const std::vector<std::string> order = {"E",  "Wq", "Wk", "Wv",
                                                       "Wo", "W1", "W2", "WU"};
        return order;
    }

    Capstone() {
        std::ifstream file(capstone_path());
        const auto json = nlohmann::json::parse(file);
        for (const std::string& name : names())
            matrices[name] = matrix_of(json["params"][name]);
        for (const char* name : {"g1", "b1", "g2", "b2", "c1", "c2"})
            vectors_[name] = json["params"][name].get<std::vector<double>>();
        position_ = matrix_of(json["PE"]);
        tokens = json["tokens"].get<std::vector<std::size_t>>();
        fixture_logits = matrix_of(json["logits"]);
        fixture_residual = matrix_of(json["H_out"]);
        fixture_loss = json["loss_nats"].get<double>();
    }

    std::map<std::string, DoubleMatrix> matrices;
    std::vector<std::size_t> tokens;
    DoubleMatrix fixture_logits;   ///< [T][V]
    DoubleMatrix fixture_residual; ///< [T][d]
    double fixture_loss = 0;

    /// [T][V]
    DoubleMatrix logits() const {
        const std::size_t d = matrices.at("E").cols;
        DoubleMatrix x{tokens.size(), d, {}};
        for (std::size_t t = 0; t < tokens.size(); ++t)
            for (std::size_t i = 0; i < d; ++i)
                x.values.push_back(matrices.at("E").at(tokens[t], i) + position_.at(t, i));
        const DoubleMatrix normed = layer_norm(x, "g1", "b1");
        add(x,
            times(attention(times(normed, "Wq"), times(normed, "Wk"), times(normed, "Wv")), "Wo"));
        DoubleMatrix inner = plus(times(layer_norm(x, "g2", "b2"), "W1"), "c1");
        for (double& v : inner.values) {
            const double cubic = v + 0.044715 * v * v * v;
            v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * cubic));
        }
        add(x, plus(times(inner, "W2"), "c2"));
        return times(x, "WU");
    }

  private:
    DoubleMatrix times(const DoubleMatrix& x, const std::string& name) const {
        const DoubleMatrix& w = matrices.at(name);
        DoubleMatrix y{x.rows, w.cols, std::vector<double>(x.rows * w.cols)};
        for (std::size_t t = 0; t < x.rows; ++t)
            for (std::size_t i = 0; i < w.rows; ++i)
                for (std::size_t o = 0; o < w.cols; ++o)
                    y.values[t * w.cols + o] += x.at(t, i) * w.at(i, o);
        return y;
    }
    DoubleMatrix plus(DoubleMatrix x, const std::string& name) const {
        for (std::size_t i = 0; i < x.values.size(); ++i)
            x.values[i] += vectors_.at(name)[i % x.cols];
        return x;
    }
    static void add(DoubleMatrix& x, const DoubleMatrix& y) {
        for (std::size_t i = 0; i < x.values.size(); ++i)
            x.values[i] += y.values[i];
    }
    DoubleMatrix layer_norm(DoubleMatrix x, const char* gain, const char* bias) const {
        const auto n = static_cast<double>(x.cols);
        for (std::size_t t = 0; t < x.rows; ++t) {
            double mean = 0, squares = 0;
            for (const double v : x.row(t))
                mean += v / n;
            for (const double v : x.row(t))
                squares += (v - mean) * (v - mean) / n;
            for (std::size_t i = 0; i < x.cols; ++i) {
                double& v = x.values[t * x.cols + i];
                v = (v - mean) / std::sqrt(squares + 1e-5) * vectors_.at(gain)[i] +
                    vectors_.at(bias)[i];
            }
        }
        return x;
    }
    static DoubleMatrix attention(const DoubleMatrix& q, const DoubleMatrix& k,
                                  const DoubleMatrix& v) {
        DoubleMatrix out{q.rows, q.cols, std::vector<double>(q.values.size())};
        for (std::size_t t = 0; t < q.rows; ++t) {
            std::vector<double> p(t + 1);
            double sum = 0;
            for (std::size_t j = 0; j <= t; ++j) {
                double score = 0;
                for (std::size_t i = 0; i < q.cols; ++i)
                    score += q.at(t, i) * k.at(j, i);
                sum += p[j] = std::exp(score / std::sqrt(static_cast<double>(q.cols)));
            }
            for (std::size_t j = 0; j <= t; ++j)
                for (std::size_t i = 0; i < q.cols; ++i)
                    out.values[t * q.cols + i] += p[j] / sum * v.at(j, i);
        }
        return out;
    }

    std::map<std::string, std::vector<double>> vectors_;
    DoubleMatrix position_;
};

} // namespace mnm::tests
