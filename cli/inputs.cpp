// SPDX-License-Identifier: MIT
// Files that a command reads beside the model.
#include "cli/inputs.h"

#include "formats/atomic_file.h"
#include "formats/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace mnm::cli {
namespace {

/// What is left of a binary file that was cut within its first word.
bool is_cut_short(std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const std::string_view magic : {"MNTOKEN1", "MNCKPT01", "MNMODEL1", "MNTOKZR1", "GGUF"})
        if (text.size() >= 4 && magic.starts_with(text)) return true;
    return false;
}

} // namespace

std::filesystem::path path_of(const std::string& name) {
    return std::u8string(name.begin(), name.end());
}

std::string name_of(const std::filesystem::path& path) {
    const std::u8string name = path.u8string();
    return {name.begin(), name.end()};
}

Result<void> keep_inputs(const std::string& output, std::initializer_list<std::string> inputs) {
    for (const std::string& input : inputs) {
        if (input.empty() || !same_file(input, output)) continue;
        return Error{fmt::format("{}: is also an input ({}); choose another name for the output",
                                 output, input)};
    }
    return {};
}

Result<void> check_text(const MappedFile& file) {
    const std::span<const std::byte> bytes = file.bytes();
    const auto start = bytes.first(std::min<std::size_t>(bytes.size(), 4096));
    bool binary =
        is_cut_short(bytes) || std::find(start.begin(), start.end(), std::byte{0}) != start.end();
    for (const Format& format : model_formats())
        binary = binary || format.probe(bytes);
    if (!binary) return {};
    return Error{fmt::format("{}: is no text, {}; expected plain text or a .tok file", file.path(),
                             describe_content(bytes))};
}

} // namespace mnm::cli
