// SPDX-License-Identifier: MIT
// Files that a command reads beside the model.
#include "cli/inputs.h"

#include "formats/atomic_file.h"
#include "formats/model_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace mnm::cli {

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
    bool binary = std::find(start.begin(), start.end(), std::byte{0}) != start.end();
    for (const Format& format : model_formats())
        binary = binary || format.probe(bytes);
    if (!binary) return {};
    return Error{fmt::format("{}: is no text, {}; expected plain text or a .tok file", file.path(),
                             describe_content(bytes))};
}

} // namespace mnm::cli
