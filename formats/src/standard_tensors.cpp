// SPDX-License-Identifier: MIT
// The tensors of a Llama-style model: their names, shapes and order, and how they lie in a file.
#include "formats/src/bytes.h"
#include "formats/src/codecs.h"
#include "formats/src/formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace mnm {

std::vector<PlannedTensor> standard_tensors(const ModelConfig& config, const Codec& matrices) {
    std::vector<PlannedTensor> list;
    const auto add = [&](std::string name, const Codec& codec, std::uint64_t rows,
                         std::uint64_t cols) {
        list.push_back({name, &codec, rows, cols, name, 0});
    };
    const std::uint64_t width = config.width;
    add("token_embd.weight", matrices, config.vocab, width);
    for (std::uint64_t n = 0; n < config.layers; ++n) {
        add(fmt::format("blk.{}.attn_qkv.weight", n), matrices, config.qkv_rows(), width);
        add(fmt::format("blk.{}.attn_output.weight", n), matrices, width, config.q_rows());
        add(fmt::format("blk.{}.ffn_gate_up.weight", n), matrices, 2 * config.ffn, width);
        add(fmt::format("blk.{}.ffn_down.weight", n), matrices, width, config.ffn);
    }
    const Codec& f32 = codec(WeightType::f32);
    for (std::uint64_t n = 0; n < config.layers; ++n) {
        add(fmt::format("blk.{}.attn_norm.weight", n), f32, 1, width);
        add(fmt::format("blk.{}.ffn_norm.weight", n), f32, 1, width);
    }
    add("output_norm.weight", f32, 1, width);
    if (!config.tied_head) add("output.weight", matrices, config.vocab, width);
    return list;
}

std::uint64_t standard_size(const ModelConfig& config, const Codec& matrices) {
    const auto matrix = [&](std::uint64_t rows, std::uint64_t cols) {
        return planes(matrices, rows, cols).stored();
    };
    const std::uint64_t layer =
        matrix(config.qkv_rows(), config.width) + matrix(config.width, config.q_rows()) +
        matrix(2 * config.ffn, config.width) + matrix(config.width, config.ffn);
    const std::uint64_t norms = (2 * config.layers + 1) * 4 * config.width;
    return (config.tied_head ? 1 : 2) * matrix(config.vocab, config.width) + config.layers * layer +
           norms;
}

void place_standard_tensors(ModelFile& file, const Codec& matrices, std::uint64_t offset) {
    const std::byte* start = file.mapping->bytes().data();
    for (PlannedTensor& tensor : standard_tensors(file.details.config, matrices)) {
        const Planes size = planes(*tensor.codec, tensor.rows, tensor.cols);
        const std::byte* data = start + offset;
        // A norm takes 4 D bytes without padding; D is a multiple of 32, so padding adds nothing.
        file.tensors.push_back({std::move(tensor.name), tensor.codec, tensor.rows, tensor.cols,
                                data, size.scales != 0 ? data + size.scales_offset() : nullptr});
        offset += size.stored();
    }
}

Result<void> check_standard_plan(const WritePlan& plan, std::string_view file) {
    MNM_CHECK(plan.details.config.check(file));
    const std::vector<PlannedTensor> expected =
        standard_tensors(plan.details.config, codec(WeightType::f32));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const PlannedTensor& want = expected[i];
        if (i >= plan.tensors.size())
            return Error{fmt::format("{}: the plan lacks tensor {}", file, want.name)};
        const PlannedTensor& have = plan.tensors[i];
        if (have.name != want.name)
            return Error{fmt::format("{}: tensor {} of the plan is {}, expected {}", file, i,
                                     have.name, want.name)};
        if (have.rows != want.rows || have.cols != want.cols)
            return Error{fmt::format("{}: tensor {} is {} x {}, expected {} x {}", file, have.name,
                                     have.rows, have.cols, want.rows, want.cols)};
        if (want.rows == 1 && have.codec->type != WeightType::f32)
            return Error{fmt::format("{}: tensor {} is {}, expected f32 for a norm", file,
                                     have.name, have.codec->name)};
        if (have.cols % have.codec->column_step != 0)
            return Error{fmt::format("{}: tensor {} has {} columns, expected a multiple of {} for "
                                     "{}",
                                     file, have.name, have.cols, have.codec->column_step,
                                     have.codec->name)};
    }
    if (plan.tensors.size() > expected.size())
        return Error{fmt::format("{}: the plan has a tensor {} that its config does not call for",
                                 file, plan.tensors[expected.size()].name)};
    return {};
}

std::uint64_t rows_at_once(const PlannedTensor& tensor) {
    constexpr std::uint64_t weights = 1 << 22;
    return std::min(tensor.rows, std::max<std::uint64_t>(16, weights / tensor.cols / 16 * 16));
}

Result<void> write_tensor(AtomicFile& out, const PlannedTensor& tensor, std::size_t index,
                          const EncodeRows& encode,
                          const std::function<void(std::span<const std::byte>)>& seen) {
    const std::uint64_t step = rows_at_once(tensor);
    const std::uint64_t data_row = tensor.codec->data_row_bytes(tensor.cols);
    const std::uint64_t scale_row = tensor.codec->scale_row_bytes(tensor.cols);
    std::vector<std::byte> data(static_cast<std::size_t>(step * data_row));
    std::vector<std::byte> scales(static_cast<std::size_t>(tensor.rows * scale_row));

    const auto put = [&](std::span<const std::byte> bytes) -> Result<void> {
        seen(bytes);
        return out.write(bytes);
    };
    const auto pad = [&](std::uint64_t written) -> Result<void> {
        static constexpr std::byte zeros[64]{};
        return put({zeros, static_cast<std::size_t>(pad64(written) - written)});
    };
    for (std::uint64_t row = 0; row < tensor.rows; row += step) {
        const std::uint64_t rows = std::min(step, tensor.rows - row);
        MNM_CHECK(encode(index, row, rows, data.data(),
                         scale_row != 0 ? scales.data() + row * scale_row : nullptr));
        MNM_CHECK(put({data.data(), static_cast<std::size_t>(rows * data_row)}));
    }
    MNM_CHECK(pad(tensor.rows * data_row));
    MNM_CHECK(put(scales));
    return pad(scales.size());
}

} // namespace mnm
