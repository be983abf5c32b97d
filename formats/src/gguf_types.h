// SPDX-License-Identifier: MIT
// GGUF's numbers for weight types, and what the reader and the writer agree on.
#pragma once

#include "formats/gguf.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace mnm {

inline constexpr std::string_view gguf_magic = "GGUF";
inline constexpr std::uint64_t gguf_alignment = 32;
inline constexpr std::size_t gguf_max_name = 63; ///< bytes of a tensor's name

struct GgmlType {
    std::uint32_t number;
    std::string_view name;
    std::uint64_t block; ///< weights
    std::uint64_t block_bytes;
};

/// Null for a number that has been taken out of use or came later.
const GgmlType* find_ggml_type(std::uint32_t number);
const GgmlType* find_ggml_type(std::string_view name);

/// The tensors of a llama GGUF for this config, each with the source it is cut from.
std::vector<PlannedTensor> gguf_tensors(const ModelConfig& config, const Codec& matrices);

/// Keys and values of the tokenizer, built from tokenizer.bin.
class GgufKeys;
Result<void> add_tokenizer_keys(GgufKeys& keys, const ModelDetails& details, std::string_view pre,
                                const std::string& path);

/// For architecture llama: block, token and byte-token counts that agree with the tensors.
Result<void> check_llama(const GgufFile& file);

} // namespace mnm
