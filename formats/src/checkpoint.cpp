// SPDX-License-Identifier: MIT
// Reading the trainer's checkpoint.
#include "formats/src/bytes.h"
#include "formats/src/formats.h"

#include <fmt/format.h>

namespace mnm {

namespace {

constexpr std::string_view checkpoint_magic = "MNCKPT01";
constexpr std::uint64_t weights_offset = 4096;

} // namespace

bool probe_checkpoint(std::span<const std::byte> file) {
    return starts_with(file, checkpoint_magic);
}

Result<ModelFile> open_checkpoint(std::shared_ptr<const MappedFile> file) {
    const std::string& path = file->path();
    const std::span<const std::byte> bytes = file->bytes();
    if (bytes.size() < weights_offset)
        return Error{fmt::format("{}: the file has {} bytes, expected at least {} for the header "
                                 "of a checkpoint",
                                 path, bytes.size(), weights_offset)};
    ModelFile model;
    ModelConfig& config = model.details.config;
    std::uint64_t offset = 8;
    for (std::uint64_t* field : {&config.layers, &config.width, &config.heads, &config.kv_heads,
                                 &config.ffn, &config.vocab, &config.context}) {
        *field = load<std::uint64_t>(bytes, offset);
        offset += 8;
    }
    if (config.heads == 0 || config.width % config.heads != 0)
        return Error{fmt::format("{}: heads is {}, expected a divisor of width, {}", path,
                                 config.heads, config.width)};
    config.head_dim = config.width / config.heads;
    MNM_CHECK(config.check(path));

    const std::uint64_t count = load<std::uint64_t>(bytes, 64);
    if (count != config.parameters())
        return Error{fmt::format("{}: the header counts {} parameters, expected {} for its shape",
                                 path, count, config.parameters())};
    const std::uint64_t weights = weights_offset + 4 * count;
    const std::uint64_t with_moments = weights_offset + 12 * count;
    if (bytes.size() != weights && bytes.size() != with_moments)
        return Error{fmt::format("{}: the file has {} bytes, expected {} (weights alone) or {} "
                                 "(with the optimiser's moments)",
                                 path, bytes.size(), weights, with_moments)};
    model.mapping = std::move(file);
    place_standard_tensors(model, codec(WeightType::f32), weights_offset);
    return model;
}

} // namespace mnm
