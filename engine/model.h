// SPDX-License-Identifier: MIT
// Named tensors bound to the layers of a Llama-style model.
#pragma once

#include "formats/model_file.h"
#include "formats/result.h"

#include <cstdint>
#include <vector>

namespace mnm {

/// A matrix where it is mapped: y[rows] = W x[cols].
struct Matrix {
    WeightType type = WeightType::f32;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    const std::byte* data = nullptr;
    const float* scales = nullptr; ///< q8 [rows], q4 [rows][cols / 32], null for f32

    /// One row as floats, [cols].
    void decode_row(std::uint64_t row, float* values) const;
    /// `count` rows from `row` on, as a matrix of their own over the same memory.
    Matrix slice(std::uint64_t row, std::uint64_t count) const;
    /// Bytes a product reads.
    std::uint64_t bytes() const;
};

struct Layer {
    const float* attention_norm; ///< [D]
    Matrix qkv;                  ///< [QD + 2 KVD][D]: queries, keys, values
    Matrix output;               ///< [D][QD]
    const float* ffn_norm;       ///< [D]
    Matrix gate_up;              ///< [2 F][D]: gate, then up
    Matrix down;                 ///< [D][F]
};

/// Const after construction; any number of sessions on any threads may share it. Owns the mapping.
class Model {
  public:
    /// Errors: a matrix in a weight type the engine has no product for, a tensor missing or
    /// unaligned, a norm weight that is not finite. The matrices themselves are not read.
    static Result<Model> bind(ModelFile file);
    static Result<Model> open(const std::string& path);

    const ModelFile& file() const { return file_; }
    const ModelConfig& config() const { return file_.details.config; }
    const Matrix& embedding() const { return embedding_; }  ///< [V][D]
    const Matrix& head() const { return head_; }            ///< [V][D]; the embedding when tied
    const float* final_norm() const { return final_norm_; } ///< [D]
    const std::vector<Layer>& layers() const { return layers_; }
    /// Weight bytes one decoded token reads: every matrix once, one row of the embedding.
    std::uint64_t bytes_per_token() const;

  private:
    Model() = default;
    ModelFile file_;
    Matrix embedding_;
    Matrix head_;
    const float* final_norm_ = nullptr;
    std::vector<Layer> layers_;
};

} // namespace mnm
