// SPDX-License-Identifier: MIT
// Files that a command reads beside the model.
#pragma once

#include "formats/mapped_file.h"
#include "formats/result.h"

#include <initializer_list>
#include <string>

namespace mnm::cli {

/// Refuses an output that is one of the inputs, under whatever name (links followed). Empty names
/// are passed over.
Result<void> keep_inputs(const std::string& output, std::initializer_list<std::string> inputs);

/// Refuses a file that is no text; the error says what it looks like.
Result<void> check_text(const MappedFile& file);

} // namespace mnm::cli
