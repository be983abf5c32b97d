// SPDX-License-Identifier: MIT
// Files that a command reads beside the model, and their names.
#pragma once

#include "formats/mapped_file.h"
#include "formats/result.h"

#include <filesystem>
#include <initializer_list>
#include <string>

namespace mnm::cli {

/// A name in UTF-8 (on POSIX systems: any bytes) as a path and back. std::filesystem alone would
/// take it for text in Windows' own code page, and lose letters.
std::filesystem::path path_of(const std::string& name);
std::string name_of(const std::filesystem::path& path);

/// Refuses an output that is one of the inputs, under whatever name (links followed). Empty names
/// are passed over.
Result<void> keep_inputs(const std::string& output, std::initializer_list<std::string> inputs);

/// Refuses a file that is no text; the error says what it looks like.
Result<void> check_text(const MappedFile& file);

} // namespace mnm::cli
