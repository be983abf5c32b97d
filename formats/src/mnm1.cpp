// SPDX-License-Identifier: MIT
// Reading and writing the first version of the .mnm format.
#include "formats/src/bytes.h"
#include "formats/src/codecs.h"
#include "formats/src/formats.h"

#include <fmt/format.h>

namespace mnm {

namespace {

constexpr std::string_view mnm1_magic = "MNMODEL1";
constexpr std::uint64_t mnm1_weights_offset = 4096;
constexpr WeightType weight_types[] = {WeightType::f32, WeightType::q8, WeightType::q4};
constexpr double norm_eps = 1e-5;

/// The type number of the header, when all matrices share a type that has one.
Result<std::uint64_t> weight_type(const WritePlan& plan, std::string_view path) {
    const Codec* common = nullptr;
    for (const PlannedTensor& tensor : plan.tensors) {
        if (tensor.rows == 1) continue;
        if (common != nullptr && tensor.codec != common)
            return Error{fmt::format("{}: format mnm1 stores all matrices in one type, not {} and "
                                     "{}; use mnm2",
                                     path, common->name, tensor.codec->name)};
        common = tensor.codec;
    }
    for (std::uint64_t number = 0; number < std::size(weight_types); ++number)
        if (weight_types[number] == common->type) return number;
    return Error{
        fmt::format("{}: format mnm1 stores f32, q8 or q4, not {}; use mnm2", path, common->name)};
}

Result<void> check_storable(const ModelConfig& config, std::string_view path) {
    std::string_view what;
    if (!config.tied_head)
        what = "an output matrix of its own";
    else if (config.norm_eps != norm_eps)
        what = "a norm epsilon other than 1e-5";
    else if (config.rope_scaling.type != RopeScaling::Type::none)
        what = "RoPE scaling";
    else
        return {};
    return Error{fmt::format("{}: format mnm1 has no place for {}; use mnm2", path, what)};
}

} // namespace

bool probe_mnm1(std::span<const std::byte> file) {
    return starts_with(file, mnm1_magic);
}

Result<ModelFile> open_mnm1(std::shared_ptr<const MappedFile> file) {
    const std::string& path = file->path();
    const std::span<const std::byte> bytes = file->bytes();
    if (bytes.size() < mnm1_weights_offset)
        return Error{fmt::format("{}: the file has {} bytes, expected at least {} for the header "
                                 "of a model",
                                 path, bytes.size(), mnm1_weights_offset)};
    ModelFile model;
    ModelConfig& config = model.details.config;
    std::uint64_t offset = 8;
    for (std::uint64_t* field : {&config.layers, &config.width, &config.heads, &config.kv_heads,
                                 &config.head_dim, &config.ffn, &config.vocab, &config.context}) {
        *field = load<std::uint64_t>(bytes, offset);
        offset += 8;
    }
    config.rope_base = load<double>(bytes, 72);
    config.norm_eps = norm_eps;
    MNM_CHECK(config.check(path));
    const std::uint64_t type = load<std::uint64_t>(bytes, 80);
    if (type >= std::size(weight_types))
        return Error{
            fmt::format("{}: weight type is {}, expected 0 (f32), 1 (q8) or 2 (q4)", path, type)};
    model.details.tokenizer_hash = load<std::uint64_t>(bytes, 88);
    const Codec& matrices = codec(weight_types[type]);
    const std::uint64_t size = mnm1_weights_offset + standard_size(config, matrices);
    if (bytes.size() != size)
        return Error{fmt::format("{}: the file has {} bytes, expected {} for its shape in {}", path,
                                 bytes.size(), size, matrices.name)};
    model.mapping = std::move(file);
    place_standard_tensors(model, matrices, mnm1_weights_offset);
    return model;
}

Tensors list_mnm1(std::shared_ptr<const MappedFile> file) {
    MNM_TRY(ModelFile model, open_mnm1(std::move(file)));
    return std::move(model.tensors);
}

Result<void> write_mnm1(AtomicFile& out, const WritePlan& plan, const EncodeRows& encode) {
    const ModelConfig& config = plan.details.config;
    MNM_CHECK(check_standard_plan(plan, out.path()));
    MNM_CHECK(check_storable(config, out.path()));
    MNM_TRY(const std::uint64_t type, weight_type(plan, out.path()));

    std::vector<std::byte> header;
    append_fixed_text(header, mnm1_magic, mnm1_magic.size());
    for (const std::uint64_t field : {config.layers, config.width, config.heads, config.kv_heads,
                                      config.head_dim, config.ffn, config.vocab, config.context})
        append(header, field);
    append(header, config.rope_base);
    append(header, type);
    append(header, plan.details.tokenizer_hash);
    header.resize(mnm1_weights_offset);
    MNM_CHECK(out.write(header));
    for (std::size_t i = 0; i < plan.tensors.size(); ++i)
        MNM_CHECK(write_tensor(out, plan.tensors[i], i, encode, [](std::span<const std::byte>) {}));
    return {};
}

} // namespace mnm
