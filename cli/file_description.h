// SPDX-License-Identifier: MIT
// What any file that this program knows holds, for people and for scripts.
#pragma once

#include "formats/result.h"

#include <nlohmann/json.hpp>

#include <string>

namespace mnm::cli {

struct FileDescription {
    nlohmann::ordered_json json;
    std::string text;
};

/// Looks at the content, never at the name. `verify` compares every tensor with its checksum, where
/// the format has them.
Result<FileDescription> describe_file(const std::string& path, bool verify);

} // namespace mnm::cli
