// SPDX-License-Identifier: MIT
// GGUF: what to write for llama.cpp and Ollama, and reading any such file for information.
#pragma once

#include "formats/mapped_file.h"
#include "formats/model_file.h"
#include "formats/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mnm {

struct GgufOptions {
    std::string name; ///< general.name
    /// The pre-tokenizer llama.cpp is to use; it refuses a file that names one it does not know.
    std::string pre = "llama-bpe";
};

/// The plan of an export: q/k/v and gate/up cut apart, norms in f32, every matrix in `matrices`.
/// The name and the pre-tokenizer travel in details.metadata under their GGUF keys; a chat template
/// is what details.chat_template holds when the file is written. No row is reordered.
/// Errors: no tokenizer, or one of another vocabulary; a type that GGUF has not; llama3 RoPE
/// scaling.
Result<WritePlan> gguf_plan(const ModelFile& source, const Codec& matrices,
                            const GgufOptions& options);

// clang-format off
enum class GgufType : std::uint32_t {
    u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64
};
// clang-format on
std::string_view gguf_type_name(GgufType type);

struct GgufArray {
    GgufType type = GgufType::u8;
    std::uint64_t count = 0;
    std::span<const std::byte> bytes;      ///< elements of fixed size, not aligned
    std::vector<std::string_view> strings; ///< elements of type string

    /// Element i of an array of integers; i < count. 0 for other types.
    std::int64_t integer(std::uint64_t i) const;
};

/// Texts and arrays point into the mapping.
struct GgufValue {
    GgufType type = GgufType::u8;
    /// u8..u64, i8..i64, f32 and f64, boolean, string, array
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray> value;
};

struct GgufTensor {
    std::string_view name;
    std::uint32_t type = 0;            ///< ggml's number
    std::string_view type_name;        ///< as "q4_0"
    std::uint32_t dims = 0;            ///< 1 to 4
    std::array<std::uint64_t, 4> ne{}; ///< ne[0] are the columns; 1 beyond dims
    std::uint64_t bytes = 0;
    const std::byte* data = nullptr;

    std::uint64_t elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
};

/// Owns the mapping that everything in it points into.
struct GgufFile {
    std::shared_ptr<const MappedFile> mapping;
    std::uint32_t version = 0;
    std::uint64_t alignment = 32;
    std::vector<std::pair<std::string_view, GgufValue>> values; ///< in file order, no key twice
    std::vector<GgufTensor> tensors;                            ///< in file order, no name twice

    const GgufValue* find(std::string_view key) const;
    const GgufTensor* find_tensor(std::string_view name) const;
    /// The value of a key, when it is there and of that kind.
    std::optional<std::uint64_t> integer(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<std::string_view> text(std::string_view key) const;
    const GgufArray* array(std::string_view key) const;
};

/// Errors: everything ggml itself refuses (an unknown version, lengths beyond the file, a key or a
/// tensor twice, arrays of arrays, a wrong alignment, tensor offsets out of order), bytes after the
/// last tensor and its padding, and for architecture llama counts that do not fit the tensors.
Result<GgufFile> read_gguf(std::shared_ptr<const MappedFile> file);

} // namespace mnm
