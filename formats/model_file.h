// SPDX-License-Identifier: MIT
// What every model reader returns, what every model writer takes, and the registry of formats.
#pragma once

#include "formats/atomic_file.h"
#include "formats/codec.h"
#include "formats/mapped_file.h"
#include "formats/model_config.h"
#include "formats/result.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mnm {

/// Tensor names are llama.cpp's, with q/k/v and gate/up kept as one matrix each:
///   token_embd.weight [V][D], blk.N.attn_norm.weight [1][D], blk.N.attn_qkv.weight [QKV][D],
///   blk.N.attn_output.weight [D][QD], blk.N.ffn_norm.weight [1][D],
///   blk.N.ffn_gate_up.weight [2F][D], blk.N.ffn_down.weight [D][F], output_norm.weight [1][D],
///   output.weight [V][D] (untied only).
struct TensorView {
    std::string name;
    const Codec* codec = nullptr;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    /// 64-byte aligned in .mnm and .ckpt; lives as long as the mapping.
    const std::byte* data = nullptr;
    const std::byte* scales = nullptr; ///< null where the codec has no scale plane
    /// XXH64 of what is stored, where the file has one.
    std::optional<std::uint64_t> checksum = std::nullopt;
};

/// What the chat starts with unless told otherwise.
struct SamplingDefaults {
    double temperature = 0.7;
    double top_p = 0.9;
    std::uint32_t top_k = 64;
    std::uint32_t max_tokens = 400;

    friend bool operator==(const SamplingDefaults&, const SamplingDefaults&) = default;
};

/// The parts of a model file beside its weights.
struct ModelDetails {
    ModelConfig config;
    std::vector<std::byte> tokenizer; ///< tokenizer.bin, verbatim; empty when the file has none
    std::uint64_t tokenizer_hash = 0; ///< 0: unchecked
    std::string chat_template;        ///< Jinja text; empty: none stored
    std::optional<SamplingDefaults> sampling;
    std::vector<std::pair<std::string, std::string>> metadata; ///< free text, in file order
};

/// A checked description: every tensor the config calls for is there, with the right shape, inside
/// the file. Owns the mapping that the tensor views point into; moving it keeps them valid.
struct ModelFile {
    std::shared_ptr<const MappedFile> mapping;
    std::string_view format; ///< name of the Format that read it
    ModelDetails details;
    std::vector<TensorView> tensors;

    const std::string& path() const { return mapping->path(); }
    const TensorView* find(std::string_view name) const;
    /// The codec of the matrices, if all of them share one; null for a mixed file.
    const Codec* uniform_codec() const;
    /// Stored bits (data and scales, all tensors) divided by the number of parameters.
    double bits_per_weight() const;
};

/// One tensor to be written, and where its values come from.
struct PlannedTensor {
    std::string name; ///< in the target's own naming
    const Codec* codec = nullptr;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    std::string source;           ///< tensor of the source file, in the naming of TensorView
    std::uint64_t source_row = 0; ///< first row there
};

struct WritePlan {
    ModelDetails details;
    std::vector<PlannedTensor> tensors; ///< in file order
};

/// Fills the encoded rows [row, row + rows) of plan.tensors[tensor]; `scales` is null for a codec
/// without a scale plane. Called by a writer, in file order, on one thread.
using EncodeRows = std::function<Result<void>(
    std::size_t tensor, std::uint64_t row, std::uint64_t rows, std::byte* data, std::byte* scales)>;

/// One file format. A reader never trusts a length; a writer streams and leaves commit() to its
/// caller.
struct Format {
    std::string_view name;        ///< "ckpt", "mnm1", "mnm2", "gguf"
    std::string_view description; ///< one line for people
    bool (*probe)(std::span<const std::byte> file);
    Result<ModelFile> (*open)(std::shared_ptr<const MappedFile> file);
    /// May be null.
    Result<void> (*write)(AtomicFile& out, const WritePlan& plan, const EncodeRows& encode);
    /// The tensors as they are stored, in the file's own naming and order, for reading a result
    /// back. Null where write is. Errors: what open gives; a tensor in a type that no Codec has.
    Result<std::vector<TensorView>> (*list)(std::shared_ptr<const MappedFile> file) = nullptr;
};

std::span<const Format> model_formats();
const Format* find_format(std::string_view name);

/// Whether a format knows the file by how it begins.
bool is_model(std::span<const std::byte> file);

/// Opens any supported model file: probes the content, never the name. The errors say what the
/// content looks like (an HTML page, a zip, a git-lfs pointer, another program's format) when no
/// format fits.
Result<ModelFile> open_model(const std::string& path);

/// Reads every weight once and compares it with the file's checksums; a format without them passes.
/// The error names the first damaged tensor. Opening a file does not do this: it takes as long as
/// the disk.
Result<void> verify_tensors(const ModelFile& file);
/// The same for one tensor of the file.
Result<void> verify_tensor(const ModelFile& file, const TensorView& tensor);

/// What a file that is not what was expected looks like, for a message: "it looks like an HTML
/// page".
std::string describe_content(std::span<const std::byte> file);

/// The tensors a model of this config has, in .mnm order (that of the checkpoint: embedding, the
/// matrices of each layer, the norms, then the head when untied), with every matrix in `matrices`
/// and every norm in f32. Codec and source are filled in; source names equal names.
std::vector<PlannedTensor> standard_tensors(const ModelConfig& config, const Codec& matrices);

} // namespace mnm
