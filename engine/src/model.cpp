// SPDX-License-Identifier: MIT
// Binding the tensors of a file to the layers of the model.
#include "engine/model.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace mnm {

std::uint64_t Matrix::bytes() const {
    const Codec& stored = codec(type);
    return rows * (stored.data_row_bytes(cols) + stored.scale_row_bytes(cols));
}

Matrix Matrix::slice(std::uint64_t row, std::uint64_t count) const {
    const Codec& stored = codec(type);
    Matrix part = *this;
    part.rows = count;
    part.data += row * stored.data_row_bytes(cols);
    if (scales != nullptr) part.scales += row * stored.scale_row_bytes(cols) / sizeof(float);
    return part;
}

void Matrix::decode_row(std::uint64_t row, float* values) const {
    const Matrix one = slice(row, 1);
    codec(type).decode(one.data, reinterpret_cast<const std::byte*>(one.scales), 1, cols, values);
}

namespace {

/// Finds tensors by name and remembers the first thing that was wrong.
class Binder {
  public:
    explicit Binder(const ModelFile& file) : file_(file) {}

    Matrix matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
        const TensorView* tensor = find(name, rows, cols);
        if (tensor == nullptr) return {};
        const WeightType type = tensor->codec->type;
        if (type != WeightType::f32 && type != WeightType::q8 && type != WeightType::q4) {
            fail(name, fmt::format("is stored as {}", tensor->codec->name),
                 "f32, q8 or q4, the types this engine multiplies with");
            return {};
        }
        return {type, rows, cols, tensor->data, reinterpret_cast<const float*>(tensor->scales)};
    }

    const float* norm(const std::string& name, std::uint64_t width) {
        const TensorView* tensor = find(name, 1, width);
        if (tensor == nullptr) return nullptr;
        if (tensor->codec->type != WeightType::f32) {
            fail(name, fmt::format("is stored as {}", tensor->codec->name), "f32");
            return nullptr;
        }
        const auto* values = reinterpret_cast<const float*>(tensor->data);
        for (std::uint64_t i = 0; i < width; ++i) {
            if (!std::isfinite(values[i])) {
                fail(name, fmt::format("holds {} at {}", values[i], i), "finite numbers");
                return nullptr;
            }
        }
        return values;
    }

    Result<void> result() const { return failed_ ? Result<void>(error_) : Result<void>(); }

  private:
    const TensorView* find(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
        const TensorView* tensor = file_.find(name);
        if (tensor == nullptr) {
            fail(name, "is missing", "a tensor of that name");
            return nullptr;
        }
        if (tensor->rows != rows || tensor->cols != cols) {
            fail(name, fmt::format("is {} x {}", tensor->rows, tensor->cols),
                 fmt::format("{} x {}", rows, cols));
            return nullptr;
        }
        const auto address = reinterpret_cast<std::uintptr_t>(tensor->data) |
                             reinterpret_cast<std::uintptr_t>(tensor->scales);
        if (address % alignof(float) != 0) {
            fail(name, "is not aligned in the file", "a multiple of 4 bytes");
            return nullptr;
        }
        return tensor;
    }

    void fail(const std::string& name, const std::string& found, const std::string& expected) {
        if (failed_) return;
        failed_ = true;
        error_ = {
            fmt::format("{}: tensor {} {}; expected {}", file_.path(), name, found, expected)};
    }

    const ModelFile& file_;
    bool failed_ = false;
    Error error_;
};

} // namespace

Result<Model> Model::bind(ModelFile file) {
    Model model;
    model.file_ = std::move(file);
    const ModelConfig& c = model.config();
    Binder binder(model.file_);
    model.embedding_ = binder.matrix("token_embd.weight", c.vocab, c.width);
    model.head_ = c.tied_head ? model.embedding_ : binder.matrix("output.weight", c.vocab, c.width);
    model.final_norm_ = binder.norm("output_norm.weight", c.width);
    model.layers_.reserve(c.layers);
    for (std::uint64_t i = 0; i < c.layers; ++i) {
        const std::string prefix = fmt::format("blk.{}.", i);
        model.layers_.push_back({
            binder.norm(prefix + "attn_norm.weight", c.width),
            binder.matrix(prefix + "attn_qkv.weight", c.qkv_rows(), c.width),
            binder.matrix(prefix + "attn_output.weight", c.width, c.q_rows()),
            binder.norm(prefix + "ffn_norm.weight", c.width),
            binder.matrix(prefix + "ffn_gate_up.weight", 2 * c.ffn, c.width),
            binder.matrix(prefix + "ffn_down.weight", c.width, c.ffn),
        });
    }
    MNM_CHECK(binder.result());
    return model;
}

Result<Model> Model::open(const std::string& path) {
    MNM_TRY(ModelFile file, open_model(path));
    return bind(std::move(file));
}

std::uint64_t Model::bytes_per_token() const {
    std::uint64_t bytes = head_.bytes() + embedding_.bytes() / embedding_.rows;
    for (const Layer& layer : layers_) {
        bytes += layer.qkv.bytes() + layer.output.bytes() + layer.gate_up.bytes() +
                 layer.down.bytes() + 2 * config().width * sizeof(float);
    }
    return bytes;
}

} // namespace mnm
