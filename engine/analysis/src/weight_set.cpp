// SPDX-License-Identifier: MIT
// Float copies of a model's weights, and encoded ones.
#include "engine/analysis/weight_set.h"

#include "engine/src/zeroed.h"
#include "engine/src/finite.h"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <limits>
#include <new>

namespace mnm {
namespace {

/// Rows that one thread takes at a time.
constexpr std::size_t row_grain = 16;

void decode_rows(const TensorView& tensor, std::uint64_t row, std::uint64_t rows, float* values) {
    const Codec& codec = *tensor.codec;
    const std::byte* scales = tensor.scales;
    if (scales != nullptr) scales += row * codec.scale_row_bytes(tensor.cols);
    codec.decode(tensor.data + row * codec.data_row_bytes(tensor.cols), scales, rows, tensor.cols,
                 values);
}

/// `file` with its tensors elsewhere, bound.
Result<std::unique_ptr<Model>> bind(ModelFile file) {
    MNM_TRY(Model model, Model::bind(std::move(file)));
    return std::make_unique<Model>(std::move(model));
}

Error no_memory(const ModelFile& file) {
    return {fmt::format("{}: not enough memory for a copy of its {} weights", file.path(),
                        file.details.config.parameters())};
}

} // namespace

std::vector<MatrixSlice> matrix_slices(const ModelFile& file) {
    const ModelConfig& c = file.details.config;
    std::vector<MatrixSlice> slices;
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
        const TensorView& tensor = file.tensors[i];
        if (tensor.rows == 1) continue;
        const auto add = [&](const std::string& name, std::uint64_t first, std::uint64_t rows) {
            slices.push_back({name, i, first, rows, tensor.cols});
        };
        const auto part_of = [&](std::string_view whole, std::string_view part) {
            std::string name = tensor.name;
            return name.replace(name.find(whole), whole.size(), part);
        };
        if (tensor.name.find("attn_qkv") != std::string::npos) {
            add(part_of("attn_qkv", "attn_q"), 0, c.q_rows());
            add(part_of("attn_qkv", "attn_k"), c.q_rows(), c.kv_rows());
            add(part_of("attn_qkv", "attn_v"), c.q_rows() + c.kv_rows(), c.kv_rows());
        } else if (tensor.name.find("ffn_gate_up") != std::string::npos) {
            add(part_of("ffn_gate_up", "ffn_gate"), 0, c.ffn);
            add(part_of("ffn_gate_up", "ffn_up"), c.ffn, c.ffn);
        } else {
            add(tensor.name, 0, tensor.rows);
        }
    }
    return slices;
}

struct WeightSet::Buffers {
    std::deque<Floats> tensors; ///< in the order of ModelFile::tensors
};

WeightSet::WeightSet(WeightSet&&) noexcept = default;
WeightSet::~WeightSet() = default;

Result<WeightSet> WeightSet::copy(const Model& source, Parallel& parallel) {
    WeightSet set;
    set.source_ = source.file();
    set.matrices_ = matrix_slices(set.source_);
    set.buffers_ = std::make_unique<Buffers>();
    ModelFile file = set.source_;
    try {
        for (TensorView& tensor : file.tensors) {
            const Floats& floats = set.buffers_->tensors.emplace_back(tensor.rows * tensor.cols);
            tensor.codec = &codec(WeightType::f32);
            tensor.data = reinterpret_cast<const std::byte*>(floats.data());
            tensor.scales = nullptr;
        }
    } catch (const std::bad_alloc&) {
        return no_memory(set.source_);
    }
    set.restore(parallel);
    for (const TensorView& tensor : file.tensors) {
        const auto* values = reinterpret_cast<const float*>(tensor.data);
        for (std::uint64_t r = 0; r < tensor.rows; ++r) {
            if (all_within(values + r * tensor.cols, tensor.cols,
                           std::numeric_limits<float>::max()))
                continue;
            return Error{fmt::format("{}: tensor {} row {} holds a weight that is not finite (did "
                                     "the training diverge?)",
                                     file.path(), tensor.name, r)};
        }
    }
    MNM_TRY(set.model_, bind(std::move(file)));
    return set;
}

std::span<float> WeightSet::weights(const MatrixSlice& matrix) {
    return {buffers_->tensors[matrix.tensor].data() + matrix.first_row * matrix.cols,
            matrix.weights()};
}

std::span<float> WeightSet::tensor(const std::string& name) {
    for (std::size_t i = 0; i < source_.tensors.size(); ++i) {
        const TensorView& view = source_.tensors[i];
        if (view.name == name) return {buffers_->tensors[i].data(), view.rows * view.cols};
    }
    return {};
}

void WeightSet::original(const MatrixSlice& matrix, std::span<float> values) const {
    decode_rows(source_.tensors[matrix.tensor], matrix.first_row, matrix.rows, values.data());
}

void WeightSet::restore_tensor(std::size_t index, std::uint64_t row, std::uint64_t rows) {
    const TensorView& tensor = source_.tensors[index];
    decode_rows(tensor, row, rows, buffers_->tensors[index].data() + row * tensor.cols);
}

void WeightSet::restore(const MatrixSlice& matrix) {
    restore_tensor(matrix.tensor, matrix.first_row, matrix.rows);
}

void WeightSet::restore(Parallel& parallel) {
    for (std::size_t i = 0; i < source_.tensors.size(); ++i) {
        parallel.for_ranges(source_.tensors[i].rows, row_grain,
                            [&](std::size_t begin, std::size_t end, unsigned) {
                                restore_tensor(i, begin, end - begin);
                            });
    }
}

struct EncodedModel::Planes {
    std::deque<Floats> blocks; ///< data and scales, at cache lines
    std::byte* take(std::uint64_t bytes) {
        return reinterpret_cast<std::byte*>(blocks.emplace_back((bytes + 3) / 4).data());
    }
};

EncodedModel::EncodedModel(EncodedModel&&) noexcept = default;
EncodedModel::~EncodedModel() = default;

Result<EncodedModel> EncodedModel::encode(WeightSet& weights, const Codec& codec,
                                          const EncodeOptions& options, Parallel& parallel) {
    EncodedModel encoded;
    encoded.planes_ = std::make_unique<Planes>();
    ModelFile file = weights.model().file();
    try {
        for (TensorView& tensor : file.tensors) {
            const auto* source = reinterpret_cast<const float*>(tensor.data);
            const Codec& to = tensor.rows == 1 ? mnm::codec(WeightType::f32) : codec;
            const std::uint64_t data_bytes = to.data_row_bytes(tensor.cols);
            const std::uint64_t scale_bytes = to.scale_row_bytes(tensor.cols);
            std::byte* data = encoded.planes_->take(tensor.rows * data_bytes);
            std::byte* scales =
                scale_bytes == 0 ? nullptr : encoded.planes_->take(tensor.rows * scale_bytes);
            parallel.for_ranges(
                tensor.rows, row_grain, [&](std::size_t begin, std::size_t end, unsigned) {
                    to.encode(source + begin * tensor.cols, end - begin, tensor.cols, options,
                              data + begin * data_bytes,
                              scales == nullptr ? nullptr : scales + begin * scale_bytes);
                });
            tensor.codec = &to;
            tensor.data = data;
            tensor.scales = scales;
        }
    } catch (const std::bad_alloc&) {
        return no_memory(file);
    }
    MNM_TRY(encoded.model_, bind(std::move(file)));
    return encoded;
}

void encode_and_decode(WeightSet& weights, const Codec& codec, const EncodeOptions& options,
                       Parallel& parallel) {
    for (const MatrixSlice& matrix : weights.matrices()) {
        const std::span<float> values = weights.weights(matrix);
        parallel.for_ranges(
            matrix.rows, row_grain, [&](std::size_t begin, std::size_t end, unsigned) {
                std::vector<std::byte> data(codec.data_row_bytes(matrix.cols));
                std::vector<std::byte> scales(codec.scale_row_bytes(matrix.cols));
                for (std::size_t r = begin; r < end; ++r) {
                    float* row = values.data() + r * matrix.cols;
                    codec.encode(row, 1, matrix.cols, options, data.data(), scales.data());
                    codec.decode(data.data(), scales.data(), 1, matrix.cols, row);
                }
            });
    }
}

double stored_bits(const ModelFile& file, const Codec& codec) {
    double bytes = 0;
    for (const TensorView& tensor : file.tensors) {
        const Codec& to = tensor.rows == 1 ? mnm::codec(WeightType::f32) : codec;
        bytes += static_cast<double>(
            tensor.rows * (to.data_row_bytes(tensor.cols) + to.scale_row_bytes(tensor.cols)));
    }
    return 8 * bytes;
}

} // namespace mnm
