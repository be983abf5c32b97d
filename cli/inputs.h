// SPDX-License-Identifier: MIT
// Files that a command reads beside the model.
#pragma once

#include "formats/mapped_file.h"
#include "formats/result.h"

#include <initializer_list>
#include <memory>
#include <string>

namespace mnm::cli {

/// Refuses an output that is one of the inputs, under whatever name (links followed). Empty names
/// are passed over.
Result<void> keep_inputs(const std::string& output, std::initializer_list<std::string> inputs);

/// Maps a text. Errors: what MappedFile::open says; the content is binary (what it looks like is
/// named).
Result<std::shared_ptr<const MappedFile>> open_text(const std::string& path);

} // namespace mnm::cli
