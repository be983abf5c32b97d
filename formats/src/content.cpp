// SPDX-License-Identifier: MIT
// Telling what a file is that no reader here knows.
#include "formats/src/bytes.h"
#include "formats/src/formats.h"
#include "formats/src/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace mnm {

namespace {

struct Signature {
    std::string_view start;
    std::string_view what;
};

using namespace std::string_view_literals;

constexpr Signature signatures[] = {
    {"version https://git-lfs.github.com/spec/"sv,
     "it looks like a git-lfs pointer, the file itself was not downloaded (git lfs pull)"sv},
    {"PK\x03\x04"sv, "it looks like a zip archive (or a PyTorch .pt file, which is one)"sv},
    {"\x28\xb5\x2f\xfd"sv, "it looks like a zstd archive; unpack it first"sv},
    {"\x1f\x8b"sv, "it looks like a gzip archive; unpack it first"sv},
    {"\xfd"
     "7zXZ\0"sv,
     "it looks like an xz archive; unpack it first"sv},
    {"BZh"sv, "it looks like a bzip2 archive; unpack it first"sv},
    {"7z\xbc\xaf\x27\x1c"sv, "it looks like a 7-Zip archive; unpack it first"sv},
    {"\x80\x02"sv, "it looks like a Python pickle (an old PyTorch file)"sv},
    {"MNTOKZR1"sv, "it is a tokenizer"sv},
    {"MNTOKEN1"sv, "it is a stream of tokens"sv},
    {"MNCKPT"sv, "it is a checkpoint of a version that is not supported"sv},
    {"MNMODEL"sv, "it is a Mnemonic model of a version that is not supported"sv},
    {"GGUF"sv, "it is a GGUF file cut short"sv},
    {"ggjt"sv, "it is a llama.cpp file from before GGUF, which is not supported"sv},
    {"ggla"sv, "it is a llama.cpp adapter, which is not supported"sv},
    {"lmgg"sv, "it is a llama.cpp file from before GGUF, which is not supported"sv},
    {"\x7f"
     "ELF"sv,
     "it looks like a program"sv},
    {"MZ"sv, "it looks like a Windows program"sv},
    {"%PDF"sv, "it looks like a PDF document"sv},
    {"\x89HDF"sv, "it looks like an HDF5 file"sv},
    {"\x93NUMPY"sv, "it looks like a NumPy array"sv},
};

bool looks_like_html(std::string_view text) {
    const std::size_t start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (start == std::string_view::npos) return false;
    std::string lower(text.substr(start, 64));
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower.starts_with("<!doctype html") || lower.starts_with("<html") ||
           lower.starts_with("<head") || lower.starts_with("<?xml");
}

/// A length that the file can hold, then a JSON object.
bool looks_like_safetensors(std::span<const std::byte> file) {
    if (file.size() < 10) return false;
    const std::uint64_t length = load<std::uint64_t>(file, 0);
    return length >= 2 && length <= file.size() - 8 && static_cast<char>(file[8]) == '{';
}

bool looks_like_text(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c >= 0x80 || c >= ' ' || c == '\n' || c == '\r' || c == '\t';
    });
}

} // namespace

std::string describe_content(std::span<const std::byte> file) {
    if (file.empty()) return "the file is empty";
    const auto zero = [](std::byte b) { return b == std::byte{0}; };
    const std::span<const std::byte> start = file.first(std::min<std::size_t>(file.size(), 512));
    for (const Format& format : model_formats())
        if (format.probe(file)) return fmt::format("it is a model ({})", format.name);
    for (const auto& [magic, what] : signatures)
        if (starts_with(file, magic)) return std::string(what);
    const std::string_view text = as_text(start);
    if (looks_like_html(text))
        return "it looks like an HTML or XML page, perhaps the page of a failed download";
    if (looks_like_safetensors(file)) return "it looks like a safetensors file";
    if (std::all_of(start.begin(), start.end(), zero)) return "it begins with zeros only";
    if (text.starts_with('{') || text.starts_with('[')) return "it looks like JSON text";
    if (looks_like_text(text)) return "it looks like plain text";
    std::string bytes;
    for (const std::byte b : file.first(std::min<std::size_t>(file.size(), 8)))
        bytes += fmt::format(" {:02x}", static_cast<unsigned>(b));
    return "its content is unknown, it begins with the bytes" + bytes;
}

} // namespace mnm
