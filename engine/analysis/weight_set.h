// SPDX-License-Identifier: MIT
// A model's weights as floats in memory, where a study may change them, and bound to a model that
// runs on what they are now.
#pragma once

#include "engine/model.h"
#include "engine/parallel.h"
#include "formats/codec.h"
#include "formats/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mnm {

/// A matrix as people count them: q, k and v, gate and up are rows of one stored tensor each.
struct MatrixSlice {
    std::string name;       ///< llama.cpp's: "blk.0.attn_q.weight"
    std::size_t tensor = 0; ///< in ModelFile::tensors
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;

    std::uint64_t weights() const { return rows * cols; }
};

/// Every matrix of the model, in file order; norms are none.
std::vector<MatrixSlice> matrix_slices(const ModelFile& file);

/// One float copy of the model. The source's mapping is kept open, so that any part can be
/// restored.
class WeightSet {
  public:
    /// Errors: a weight that is not finite (tensor and row named), not enough memory.
    static Result<WeightSet> copy(const Model& source, Parallel& parallel);
    WeightSet(WeightSet&&) noexcept;
    ~WeightSet();

    /// Runs on the weights as they are now; lives as long as this.
    const Model& model() const { return *model_; }
    const std::vector<MatrixSlice>& matrices() const { return matrices_; }
    /// [rows][cols]
    std::span<float> weights(const MatrixSlice& matrix);
    /// A whole tensor, a norm perhaps; empty where the model has none of that name.
    std::span<float> tensor(const std::string& name);

    /// The source's weights of one matrix, [rows][cols].
    void original(const MatrixSlice& matrix, std::span<float> values) const;
    /// Puts the source's weights back: of one matrix, or of everything.
    void restore(const MatrixSlice& matrix);
    void restore(Parallel& parallel);

  private:
    struct Buffers;
    WeightSet() = default;
    void restore_tensor(std::size_t index, std::uint64_t row, std::uint64_t rows);
    ModelFile source_;
    std::unique_ptr<Buffers> buffers_;
    std::unique_ptr<Model> model_;
    std::vector<MatrixSlice> matrices_;
};

/// The model with every matrix in one weight type that the engine multiplies with (f32, q8, q4):
/// the bytes that `mnm quantize` would write, in memory.
class EncodedModel {
  public:
    /// `weights` may be dropped afterwards. Errors: not enough memory, a type without a product.
    static Result<EncodedModel> encode(WeightSet& weights, const Codec& codec,
                                       const EncodeOptions& options, Parallel& parallel);
    EncodedModel(EncodedModel&&) noexcept;
    ~EncodedModel();
    const Model& model() const { return *model_; }

  private:
    struct Planes;
    EncodedModel() = default;
    std::unique_ptr<Planes> planes_;
    std::unique_ptr<Model> model_;
};

/// Replaces every matrix by what a weight type makes of it (encoded, then decoded).
void encode_and_decode(WeightSet& weights, const Codec& codec, const EncodeOptions& options,
                       Parallel& parallel);

/// Bits that the model takes with its matrices in `codec` and its norms in f32, scales included.
double stored_bits(const ModelFile& file, const Codec& codec);

} // namespace mnm
