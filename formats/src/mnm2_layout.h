// SPDX-License-Identifier: MIT
// The fixed parts of a version 2 file (docs/format-2.md), and its JSON sections.
#pragma once

#include "formats/model_file.h"
#include "formats/src/bytes.h"

#include <xxhash.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mnm::mnm2 {

inline constexpr std::string_view magic = "MNMODEL2";
inline constexpr std::uint32_t minor_version = 0;
inline constexpr std::uint64_t header_size = 64;
inline constexpr std::uint64_t section_entry_size = 48;
inline constexpr std::uint64_t tensor_entry_size = 120;
inline constexpr std::uint64_t section_align = 64;
inline constexpr std::uint64_t weights_align = 4096;
inline constexpr std::size_t section_name_size = 16;
inline constexpr std::size_t tensor_name_size = 64;
inline constexpr std::size_t codec_name_size = 16;
inline constexpr std::uint32_t max_sections = 1024;

enum SectionFlags : std::uint32_t {
    required = 1,        ///< a reader that does not know the section must refuse the file
    parts_checksums = 2, ///< no checksum here: what lies inside has its own
};

/// Sections this version knows, in the order in which they are written.
inline constexpr std::string_view config_section = "config";
inline constexpr std::string_view tokenizer_section = "tokenizer";
inline constexpr std::string_view template_section = "chat_template";
inline constexpr std::string_view sampling_section = "sampling";
inline constexpr std::string_view metadata_section = "metadata";
inline constexpr std::string_view weights_section = "weights";
inline constexpr std::string_view tensors_section = "tensors";

/// The most bytes a section may have; a hostile file cannot make us read more.
inline constexpr std::uint64_t json_limit = 1 << 16;
inline constexpr std::uint64_t text_limit = 1 << 20;
inline constexpr std::uint64_t blob_limit = 1 << 24;
inline constexpr std::size_t metadata_limit = 4096; ///< entries

inline std::uint64_t checksum(std::span<const std::byte> bytes) {
    return XXH64(bytes.data(), bytes.size(), 0);
}

/// The JSON texts; the two parsers name `file` and the section in their errors.
std::string config_text(const ModelDetails& details);
Result<void> parse_config(std::string_view text, const std::string& file, ModelDetails& details);
std::string sampling_text(const SamplingDefaults& sampling);
Result<SamplingDefaults> parse_sampling(std::string_view text, const std::string& file);
using Metadata = std::vector<std::pair<std::string, std::string>>;
/// Errors: a text that is not UTF-8, too many entries.
Result<std::string> metadata_text(const Metadata& metadata, const std::string& file);
Result<Metadata> parse_metadata(std::string_view text, const std::string& file);

} // namespace mnm::mnm2
