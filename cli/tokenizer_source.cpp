// SPDX-License-Identifier: MIT
// Where the tokenizer of a model comes from.
#include "cli/tokenizer_source.h"

#include "cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace mnm::cli {
namespace {

bool is_tokenizer_bin(std::span<const std::byte> bytes) {
    constexpr std::string_view magic = "MNTOKZR1";
    return bytes.size() >= magic.size() &&
           std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

Result<FoundTokenizer> parse(std::span<const std::byte> bytes, const std::string& source) {
    MNM_TRY(TokenizerFile file, parse_tokenizer(bytes, source));
    return FoundTokenizer{source, {bytes.begin(), bytes.end()}, std::move(file)};
}

std::string beside(const ModelFile& model) {
    return name_of(path_of(model.path()).replace_filename("tokenizer.bin"));
}

bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path_of(path), ignored);
}

Result<void> check_fit(const FoundTokenizer& found, const ModelFile& model) {
    const ModelDetails& details = model.details;
    if (found.file.vocab != details.config.vocab) {
        return Error{fmt::format("{}: the tokenizer has {} tokens, the model {} has {}; give the "
                                 "one it was trained with by --tokenizer FILE",
                                 found.source, found.file.vocab, model.path(),
                                 details.config.vocab)};
    }
    const bool both_known = found.file.hash != 0 && details.tokenizer_hash != 0;
    if (both_known && found.file.hash != details.tokenizer_hash) {
        return Error{fmt::format("{}: tokenizer hash {:016x}, the model {} was made with {:016x}; "
                                 "give the one it was trained with by --tokenizer FILE",
                                 found.source, found.file.hash, model.path(),
                                 details.tokenizer_hash)};
    }
    // The hash is the trainer's and cannot be computed again.
    if (both_known && !details.tokenizer.empty() && found.bytes != details.tokenizer) {
        return Error{fmt::format("{}: differs from the tokenizer in {}, though both say that they "
                                 "are {:016x}; one of them is damaged",
                                 found.source, model.path(), found.file.hash)};
    }
    return {};
}

} // namespace

Result<FoundTokenizer> read_tokenizer(const std::string& path) {
    MNM_TRY(auto mapping, MappedFile::open(path));
    if (is_tokenizer_bin(mapping->bytes())) return parse(mapping->bytes(), path);
    if (!is_model(mapping->bytes())) {
        return Error{fmt::format("{}: not a tokenizer: {}; expected a tokenizer.bin, or a model "
                                 "file that holds one",
                                 path, describe_content(mapping->bytes()))};
    }
    MNM_TRY(ModelFile model, open_model(path));
    MNM_TRY(auto found, find_tokenizer(model, ""));
    if (!found) return Error{fmt::format("{}: the model file holds no tokenizer", path)};
    return *std::move(found);
}

Result<std::optional<FoundTokenizer>> find_tokenizer(const ModelFile& model,
                                                     const std::string& given) {
    std::optional<FoundTokenizer> found;
    if (!given.empty()) {
        MNM_TRY(found, read_tokenizer(given));
    } else if (!model.details.tokenizer.empty()) {
        MNM_TRY(found, parse(model.details.tokenizer, model.path()));
    } else if (const std::string neighbour = beside(model); exists(neighbour)) {
        MNM_TRY(found, read_tokenizer(neighbour));
    } else {
        return found;
    }
    MNM_CHECK(check_fit(*found, model));
    return found;
}

Result<FoundTokenizer> need_tokenizer(const ModelFile& model, const std::string& given) {
    MNM_TRY(auto found, find_tokenizer(model, given));
    if (found) return *std::move(found);
    return Error{fmt::format("{}: no tokenizer in the model file and no {}; give one with "
                             "--tokenizer FILE",
                             model.path(), beside(model))};
}

} // namespace mnm::cli
