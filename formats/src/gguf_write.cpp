// SPDX-License-Identifier: MIT
// Writing a GGUF file as llama.cpp's own converter would.
#include "formats/src/bytes.h"
#include "formats/src/codecs.h"
#include "formats/src/formats.h"
#include "formats/src/gguf_keys.h"
#include "formats/src/gguf_types.h"
#include "formats/src/unicode.h"

#include <fmt/format.h>

#include <array>

namespace mnm {

namespace {

constexpr std::uint32_t version = 3;
constexpr std::string_view name_key = "general.name";
constexpr std::string_view pre_key = "tokenizer.ggml.pre";

/// llama.cpp's number for a file whose matrices have this type.
std::optional<std::uint32_t> file_type(const Codec& codec) {
    switch (codec.type) {
    case WeightType::f32:
        return 0;
    case WeightType::f16:
        return 1;
    case WeightType::q4_0:
        return 2;
    case WeightType::q8_0:
        return 7;
    default:
        return std::nullopt;
    }
}

Result<void> check_type(const Codec& codec, const std::string& path) {
    if (file_type(codec)) return {};
    return Error{
        fmt::format("{}: GGUF has no type {}, expected f32, f16, q8_0 or q4_0", path, codec.name)};
}

Result<void> check_scaling(const ModelConfig& config, const std::string& path) {
    if (config.rope_scaling.type != RopeScaling::Type::llama3) return {};
    return Error{fmt::format("{}: writing llama3 RoPE scaling to GGUF is not supported", path)};
}

Result<void> check_plan(const WritePlan& plan, const std::string& path) {
    MNM_CHECK(plan.details.config.check(path));
    MNM_CHECK(check_scaling(plan.details.config, path));
    const auto expected = gguf_tensors(plan.details.config, codec(WeightType::f32));
    if (plan.tensors.size() != expected.size())
        return Error{fmt::format("{}: the plan has {} tensors, expected {}", path,
                                 plan.tensors.size(), expected.size())};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const PlannedTensor& have = plan.tensors[i];
        const PlannedTensor& want = expected[i];
        if (have.name != want.name || have.rows != want.rows || have.cols != want.cols)
            return Error{fmt::format("{}: tensor {} of the plan is {}, {} x {}, expected {}, {} x "
                                     "{}",
                                     path, i, have.name, have.rows, have.cols, want.name, want.rows,
                                     want.cols)};
        MNM_CHECK(check_type(*have.codec, path));
        if (want.rows == 1 && have.codec->type != WeightType::f32)
            return Error{fmt::format("{}: tensor {} is {}, expected f32 for a norm", path,
                                     have.name, have.codec->name)};
    }
    return {};
}

/// The type of most weights.
std::uint32_t main_type(const WritePlan& plan) {
    std::array<std::uint64_t, 8> weights{};
    for (const PlannedTensor& tensor : plan.tensors)
        weights.at(*file_type(*tensor.codec)) += tensor.rows * tensor.cols;
    const auto most = std::max_element(weights.begin(), weights.end());
    return static_cast<std::uint32_t>(most - weights.begin());
}

std::string_view metadata(const ModelDetails& details, std::string_view key,
                          std::string_view fallback) {
    for (const auto& [name, text] : details.metadata)
        if (name == key) return text;
    return fallback;
}

void add_model_keys(GgufKeys& keys, const WritePlan& plan) {
    const ModelConfig& config = plan.details.config;
    const auto count = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    keys.add("general.architecture", "llama");
    keys.add(name_key, metadata(plan.details, name_key, "model"));
    keys.add("general.file_type", main_type(plan));
    keys.add("general.quantization_version", std::uint32_t{2});
    keys.add("llama.context_length", count(config.context));
    keys.add("llama.embedding_length", count(config.width));
    keys.add("llama.block_count", count(config.layers));
    keys.add("llama.feed_forward_length", count(config.ffn));
    keys.add("llama.attention.head_count", count(config.heads));
    keys.add("llama.attention.head_count_kv", count(config.kv_heads));
    keys.add("llama.rope.dimension_count", count(config.head_dim));
    keys.add("llama.vocab_size", count(config.vocab));
    keys.add("llama.rope.freq_base", static_cast<float>(config.rope_base));
    keys.add("llama.attention.layer_norm_rms_epsilon", static_cast<float>(config.norm_eps));
    if (config.q_rows() != config.width) { // otherwise llama.cpp takes width / heads
        keys.add("llama.attention.key_length", count(config.head_dim));
        keys.add("llama.attention.value_length", count(config.head_dim));
    }
    if (config.rope_scaling.type == RopeScaling::Type::linear) {
        keys.add("llama.rope.scaling.type", "linear");
        keys.add("llama.rope.scaling.factor", static_cast<float>(config.rope_scaling.factor));
    }
}

/// What the source says about itself: author, licence, ...; GgufKeys drops what is there already.
void add_general_keys(GgufKeys& keys, const ModelDetails& details) {
    for (const auto& [key, text] : details.metadata)
        if (key.starts_with("general.") && key != "general.alignment" && valid_utf8(key) &&
            valid_utf8(text))
            keys.add(key, text);
}

/// Bytes of the tensor in the file, and with its padding.
std::uint64_t stored_bytes(const PlannedTensor& tensor) {
    return tensor.rows * tensor.codec->data_row_bytes(tensor.cols);
}

std::vector<std::byte> tensor_entries(const WritePlan& plan) {
    std::vector<std::byte> out;
    std::uint64_t offset = 0;
    for (const PlannedTensor& tensor : plan.tensors) {
        append(out, std::uint64_t{tensor.name.size()});
        append_fixed_text(out, tensor.name, tensor.name.size());
        const bool vector = tensor.rows == 1;
        append(out, std::uint32_t{vector ? 1u : 2u});
        append(out, tensor.cols);
        if (!vector) append(out, tensor.rows);
        append(out, find_ggml_type(tensor.codec->name)->number);
        append(out, offset);
        offset = round_up(offset + stored_bytes(tensor), gguf_alignment);
    }
    return out;
}

Result<void> write_rows(AtomicFile& out, const PlannedTensor& tensor, std::size_t index,
                        const EncodeRows& encode) {
    // The planes of these types pad to 64, GGUF to 32: so the rows are written here.
    const std::uint64_t start = out.size();
    const std::uint64_t row_bytes = tensor.codec->data_row_bytes(tensor.cols);
    const std::uint64_t step = rows_at_once(tensor);
    std::vector<std::byte> data(static_cast<std::size_t>(step * row_bytes));
    for (std::uint64_t row = 0; row < tensor.rows; row += step) {
        const std::uint64_t rows = std::min(step, tensor.rows - row);
        MNM_CHECK(encode(index, row, rows, data.data(), nullptr));
        MNM_CHECK(out.write({data.data(), static_cast<std::size_t>(rows * row_bytes)}));
    }
    const std::uint64_t written = out.size() - start;
    return out.write_zeros(round_up(written, gguf_alignment) - written);
}

} // namespace

std::vector<PlannedTensor> gguf_tensors(const ModelConfig& config, const Codec& matrices) {
    std::vector<PlannedTensor> list;
    const Codec& f32 = codec(WeightType::f32);
    const std::uint64_t width = config.width, q = config.q_rows(), kv = config.kv_rows();
    for (std::uint64_t n = 0; n < config.layers; ++n) {
        const auto add = [&](std::string_view name, const Codec& type, std::uint64_t rows,
                             std::uint64_t cols, std::string_view source, std::uint64_t row) {
            list.push_back({fmt::format("blk.{}.{}.weight", n, name), &type, rows, cols,
                            fmt::format("blk.{}.{}.weight", n, source), row});
        };
        add("attn_norm", f32, 1, width, "attn_norm", 0);
        add("attn_q", matrices, q, width, "attn_qkv", 0);
        add("attn_k", matrices, kv, width, "attn_qkv", q);
        add("attn_v", matrices, kv, width, "attn_qkv", q + kv);
        add("attn_output", matrices, width, q, "attn_output", 0);
        add("ffn_norm", f32, 1, width, "ffn_norm", 0);
        add("ffn_gate", matrices, config.ffn, width, "ffn_gate_up", 0);
        add("ffn_up", matrices, config.ffn, width, "ffn_gate_up", config.ffn);
        add("ffn_down", matrices, width, config.ffn, "ffn_down", 0);
    }
    const auto whole = [&](const char* name, const Codec& type, std::uint64_t rows) {
        return PlannedTensor{name, &type, rows, width, name, 0};
    };
    list.insert(list.begin(), whole("token_embd.weight", matrices, config.vocab));
    list.push_back(whole("output_norm.weight", f32, 1));
    if (!config.tied_head) list.push_back(whole("output.weight", matrices, config.vocab));
    return list;
}

Result<WritePlan> gguf_plan(const ModelFile& source, const Codec& matrices,
                            const GgufOptions& options) {
    const std::string& path = source.path();
    MNM_CHECK(check_type(matrices, path));
    MNM_CHECK(check_scaling(source.details.config, path));
    WritePlan plan{source.details, gguf_tensors(source.details.config, matrices)};
    auto& pairs = plan.details.metadata;
    std::erase_if(pairs,
                  [](const auto& pair) { return pair.first == name_key || pair.first == pre_key; });
    pairs.emplace_back(name_key, options.name);
    pairs.emplace_back(pre_key, options.pre);
    GgufKeys trial; // so that a tokenizer that cannot be written is refused before any work
    MNM_CHECK(add_tokenizer_keys(trial, plan.details, options.pre, path));
    return plan;
}

Result<void> write_gguf(AtomicFile& out, const WritePlan& plan, const EncodeRows& encode) {
    MNM_CHECK(check_plan(plan, out.path()));
    GgufKeys keys;
    add_model_keys(keys, plan);
    const std::string_view pre = metadata(plan.details, pre_key, GgufOptions{}.pre);
    MNM_CHECK(add_tokenizer_keys(keys, plan.details, pre, out.path()));
    add_general_keys(keys, plan.details);

    std::vector<std::byte> header;
    append_fixed_text(header, gguf_magic, gguf_magic.size());
    append(header, version);
    append(header, std::uint64_t{plan.tensors.size()});
    append(header, keys.count());
    header.insert(header.end(), keys.bytes().begin(), keys.bytes().end());
    const std::vector<std::byte> entries = tensor_entries(plan);
    header.insert(header.end(), entries.begin(), entries.end());
    header.resize(static_cast<std::size_t>(round_up(header.size(), gguf_alignment)));
    MNM_CHECK(out.write(header));
    for (std::size_t i = 0; i < plan.tensors.size(); ++i)
        MNM_CHECK(write_rows(out, plan.tensors[i], i, encode));
    return {};
}

} // namespace mnm
