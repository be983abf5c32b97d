// SPDX-License-Identifier: MIT
// The functions behind the registry of formats, and what readers and writers share.
#pragma once

#include "formats/model_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mnm {

using Tensors = Result<std::vector<TensorView>>;

bool probe_checkpoint(std::span<const std::byte> file);
Result<ModelFile> open_checkpoint(std::shared_ptr<const MappedFile> file);

bool probe_mnm1(std::span<const std::byte> file);
Result<ModelFile> open_mnm1(std::shared_ptr<const MappedFile> file);
Result<void> write_mnm1(AtomicFile& out, const WritePlan& plan, const EncodeRows& encode);

bool probe_mnm2(std::span<const std::byte> file);
Result<ModelFile> open_mnm2(std::shared_ptr<const MappedFile> file);
Result<void> write_mnm2(AtomicFile& out, const WritePlan& plan, const EncodeRows& encode);

bool probe_gguf(std::span<const std::byte> file);
Result<ModelFile> open_gguf(std::shared_ptr<const MappedFile> file);
Result<void> write_gguf(AtomicFile& out, const WritePlan& plan, const EncodeRows& encode);

/// Format::list of the three.
Tensors list_mnm1(std::shared_ptr<const MappedFile> file);
Tensors list_mnm2(std::shared_ptr<const MappedFile> file);
Tensors list_gguf(std::shared_ptr<const MappedFile> file);

/// Bytes that the tensors of standard_tensors() take in formats ckpt (f32) and mnm1, each matrix
/// padded to 64. Made without making the list, so that a hostile shape costs nothing. The config
/// has been checked.
std::uint64_t standard_size(const ModelConfig& config, const Codec& matrices);

/// Fills `file.tensors` with standard_tensors() laid one after the other from `offset`. The caller
/// has checked that they fit the file.
void place_standard_tensors(ModelFile& file, const Codec& matrices, std::uint64_t offset);

/// Is `tensors` what standard_tensors() gives for this config, whatever the codecs? Names the first
/// difference.
Result<void> check_standard_plan(const WritePlan& plan, std::string_view file);

/// Rows to encode in one call: enough for every thread of the encoder to have a share, and few
/// enough to stay small.
std::uint64_t rows_at_once(const PlannedTensor& tensor);

/// Writes one tensor's planes, as Planes lays them out, encoding some rows at a time.
/// `seen` gets every byte written, in order.
Result<void> write_tensor(AtomicFile& out, const PlannedTensor& tensor, std::size_t index,
                          const EncodeRows& encode,
                          const std::function<void(std::span<const std::byte>)>& seen);

} // namespace mnm
