// SPDX-License-Identifier: MIT
// The registry of formats, and what all of them say about a model's tensors.
#include "formats/model_file.h"

#include "formats/src/bytes.h"
#include "formats/src/codecs.h"
#include "formats/src/formats.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>

namespace mnm {

namespace {

constexpr Format formats[] = {
    {"ckpt", "training checkpoint", probe_checkpoint, open_checkpoint, nullptr, nullptr},
    {"mnm1", "Mnemonic model, version 1", probe_mnm1, open_mnm1, write_mnm1, list_mnm1},
    {"mnm2", "Mnemonic model, version 2", probe_mnm2, open_mnm2, write_mnm2, list_mnm2},
    {"gguf", "GGUF, as llama.cpp and Ollama read it", probe_gguf, open_gguf, write_gguf, list_gguf},
};

} // namespace

const TensorView* ModelFile::find(std::string_view name) const {
    for (const TensorView& tensor : tensors)
        if (tensor.name == name) return &tensor;
    return nullptr;
}

const Codec* ModelFile::uniform_codec() const {
    const Codec* common = nullptr;
    for (const TensorView& tensor : tensors) {
        if (tensor.rows == 1) continue; // the norms are f32 in every model
        if (common != nullptr && tensor.codec != common) return nullptr;
        common = tensor.codec;
    }
    return common;
}

double ModelFile::bits_per_weight() const {
    std::uint64_t bytes = 0;
    for (const TensorView& tensor : tensors) {
        const Planes size = planes(*tensor.codec, tensor.rows, tensor.cols);
        bytes += size.data + size.scales;
    }
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(details.config.parameters());
}

std::span<const Format> model_formats() {
    return formats;
}

const Format* find_format(std::string_view name) {
    for (const Format& format : formats)
        if (format.name == name) return &format;
    return nullptr;
}

bool is_model(std::span<const std::byte> file) {
    return std::any_of(std::begin(formats), std::end(formats),
                       [&](const Format& format) { return format.probe(file); });
}

Result<ModelFile> open_model(const std::string& path) {
    MNM_TRY(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
    for (const Format& format : formats) {
        if (!format.probe(file->bytes())) continue;
        Result<ModelFile> model = format.open(file);
        if (model) model->format = format.name;
        return model;
    }
    std::string known;
    for (const Format& format : formats) {
        known += fmt::format("{}{}{}", known.empty() ? "" : ", ", format.name,
                             format.open == open_gguf ? " (by mnm info alone)" : "");
    }
    return Error{fmt::format("{}: not a model file: {}; the formats read here are {}", path,
                             describe_content(file->bytes()), known)};
}

Result<void> verify_tensor(const ModelFile& file, const TensorView& tensor) {
    if (!tensor.checksum) return {};
    const std::uint64_t size = planes(*tensor.codec, tensor.rows, tensor.cols).stored();
    const std::uint64_t found = XXH64(tensor.data, static_cast<std::size_t>(size), 0);
    if (found == *tensor.checksum) return {};
    return Error{
        fmt::format("{}: tensor {} is damaged: its checksum is {:016x}, expected {:016x}; copy "
                    "the file again or make it anew",
                    file.path(), tensor.name, found, *tensor.checksum)};
}

Result<void> verify_tensors(const ModelFile& file) {
    for (const TensorView& tensor : file.tensors)
        MNM_CHECK(verify_tensor(file, tensor));
    return {};
}

} // namespace mnm
