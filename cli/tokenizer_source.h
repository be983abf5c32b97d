// SPDX-License-Identifier: MIT
// Where the tokenizer of a model comes from: the command line, the model file, or beside it.
#pragma once

#include "engine/tokenizer.h"
#include "formats/model_file.h"
#include "formats/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mnm::cli {

struct FoundTokenizer {
    std::string source;           ///< the file it was read from
    std::vector<std::byte> bytes; ///< tokenizer.bin, verbatim
    TokenizerFile file;
};

/// A tokenizer.bin, or the tokenizer inside a model file.
Result<FoundTokenizer> read_tokenizer(const std::string& path);

/// `given` if it is not empty, else the one inside the model, else tokenizer.bin beside the model;
/// nothing when there is none of these. Errors: it has another vocabulary size or hash than the
/// model.
Result<std::optional<FoundTokenizer>> find_tokenizer(const ModelFile& model,
                                                     const std::string& given);
/// The same, where nothing can be done without one: the error says where it was looked for.
Result<FoundTokenizer> need_tokenizer(const ModelFile& model, const std::string& given);

} // namespace mnm::cli
