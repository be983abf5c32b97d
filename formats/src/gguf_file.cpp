// SPDX-License-Identifier: MIT
// Looking things up in a GGUF file that has been read, and whether they fit each other.
#include "formats/src/bytes.h"
#include "formats/src/gguf_types.h"
#include "formats/src/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace mnm {

namespace {

constexpr GgmlType types[] = {
    {0, "f32", 1, 4},         {1, "f16", 1, 2},         {2, "q4_0", 32, 18},
    {3, "q4_1", 32, 20},      {6, "q5_0", 32, 22},      {7, "q5_1", 32, 24},
    {8, "q8_0", 32, 34},      {9, "q8_1", 32, 36},      {10, "q2_k", 256, 84},
    {11, "q3_k", 256, 110},   {12, "q4_k", 256, 144},   {13, "q5_k", 256, 176},
    {14, "q6_k", 256, 210},   {15, "q8_k", 256, 292},   {16, "iq2_xxs", 256, 66},
    {17, "iq2_xs", 256, 74},  {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50},
    {20, "iq4_nl", 32, 18},   {21, "iq3_s", 256, 110},  {22, "iq2_s", 256, 82},
    {23, "iq4_xs", 256, 136}, {24, "i8", 1, 1},         {25, "i16", 1, 2},
    {26, "i32", 1, 4},        {27, "i64", 1, 8},        {28, "f64", 1, 8},
    {29, "iq1_m", 256, 56},   {30, "bf16", 1, 2},       {34, "tq1_0", 256, 54},
    {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},
};

constexpr std::uint64_t max_blocks = 4096;
constexpr std::int64_t byte_token = 6;

/// <0x00> to <0xFF>.
bool is_byte_token(std::string_view text) {
    const auto digit = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
    };
    return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') && digit(text[3]) &&
           digit(text[4]);
}

/// One more than the largest N of the tensors blk.N.*.
Result<std::uint64_t> blocks_of(const GgufFile& file) {
    std::uint64_t blocks = 0;
    for (const GgufTensor& tensor : file.tensors) {
        if (!tensor.name.starts_with("blk.")) continue;
        std::uint64_t number = 0;
        const char* end = tensor.name.data() + tensor.name.size();
        const auto [at, failed] = std::from_chars(tensor.name.data() + 4, end, number);
        if (failed != std::errc() || at == end || *at != '.' || number >= max_blocks)
            return Error{fmt::format("{}: tensor {} has no block number from 0 to {}",
                                     file.mapping->path(), printable(tensor.name), max_blocks - 1)};
        blocks = std::max(blocks, number + 1);
    }
    return blocks;
}

Result<void> check_tokens(const GgufFile& file) {
    const std::string& path = file.mapping->path();
    const GgufArray* tokens = file.array("tokenizer.ggml.tokens");
    if (tokens == nullptr) return {};
    if (tokens->type != GgufType::string)
        return Error{fmt::format("{}: tokenizer.ggml.tokens holds {}, expected string", path,
                                 gguf_type_name(tokens->type))};
    const GgufTensor* embedding = file.find_tensor("token_embd.weight");
    if (embedding != nullptr && embedding->ne[1] != tokens->count)
        return Error{fmt::format("{}: token_embd.weight has {} rows, expected {} as "
                                 "tokenizer.ggml.tokens",
                                 path, embedding->ne[1], tokens->count)};
    const GgufArray* kinds = file.array("tokenizer.ggml.token_type");
    if (kinds == nullptr) return {};
    if (kinds->type != GgufType::i32 || kinds->count < tokens->count)
        return Error{fmt::format("{}: tokenizer.ggml.token_type has {} values of type {}, expected "
                                 "{} of type i32",
                                 path, kinds->count, gguf_type_name(kinds->type), tokens->count)};
    for (std::uint64_t i = 0; i < tokens->count; ++i)
        if (kinds->integer(i) == byte_token &&
            !is_byte_token(tokens->strings[static_cast<std::size_t>(i)]))
            return Error{fmt::format("{}: token {} is {}, expected <0x00> to <0xFF> for a byte",
                                     path, i,
                                     printable(tokens->strings[static_cast<std::size_t>(i)]))};
    return {};
}

} // namespace

const GgmlType* find_ggml_type(std::uint32_t number) {
    for (const GgmlType& type : types)
        if (type.number == number) return &type;
    return nullptr;
}

const GgmlType* find_ggml_type(std::string_view name) {
    for (const GgmlType& type : types)
        if (type.name == name) return &type;
    return nullptr;
}

std::string_view gguf_type_name(GgufType type) {
    constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                          "bool", "string", "array", "u64", "i64", "f64"};
    const auto number = static_cast<std::uint32_t>(type);
    return number < std::size(names) ? names[number] : "unknown";
}

std::int64_t GgufArray::integer(std::uint64_t i) const {
    switch (type) {
    case GgufType::u8:
        return load<std::uint8_t>(bytes, i);
    case GgufType::i8:
        return load<std::int8_t>(bytes, i);
    case GgufType::u16:
        return load<std::uint16_t>(bytes, 2 * i);
    case GgufType::i16:
        return load<std::int16_t>(bytes, 2 * i);
    case GgufType::u32:
        return load<std::uint32_t>(bytes, 4 * i);
    case GgufType::i32:
        return load<std::int32_t>(bytes, 4 * i);
    case GgufType::u64:
    case GgufType::i64:
        return load<std::int64_t>(bytes, 8 * i);
    default:
        return 0;
    }
}

const GgufValue* GgufFile::find(std::string_view key) const {
    for (const auto& [name, value] : values)
        if (name == key) return &value;
    return nullptr;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
    for (const GgufTensor& tensor : tensors)
        if (tensor.name == name) return &tensor;
    return nullptr;
}

std::optional<std::uint64_t> GgufFile::integer(std::string_view key) const {
    const GgufValue* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (const auto* value = std::get_if<std::uint64_t>(&found->value)) return *value;
    const auto* value = std::get_if<std::int64_t>(&found->value);
    if (value == nullptr || *value < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
}

std::optional<double> GgufFile::number(std::string_view key) const {
    const GgufValue* found = find(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<double>(&found->value);
    return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
    const GgufValue* found = find(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<std::string_view>(&found->value);
    return value == nullptr ? std::nullopt : std::optional(*value);
}

const GgufArray* GgufFile::array(std::string_view key) const {
    const GgufValue* found = find(key);
    return found == nullptr ? nullptr : std::get_if<GgufArray>(&found->value);
}

Result<void> check_llama(const GgufFile& file) {
    if (file.text("general.architecture") != "llama") return {};
    const std::string& path = file.mapping->path();
    MNM_TRY(const std::uint64_t blocks, blocks_of(file));
    const auto announced = file.integer("llama.block_count");
    // A file of a tokenizer alone has no tensors, and one part of a split model has some of them.
    const bool whole = !file.tensors.empty() && file.find("split.count") == nullptr;
    if (announced && (*announced > max_blocks || (whole && *announced != blocks)))
        return Error{fmt::format("{}: llama.block_count is {}, expected {} as the tensors", path,
                                 *announced, blocks)};
    return check_tokens(file);
}

} // namespace mnm
