// SPDX-License-Identifier: MIT
// Reading version 2 files: everything is verified but the weights, which are not touched.
#include "formats/src/codecs.h"
#include "formats/src/formats.h"
#include "formats/src/mnm2_layout.h"
#include "formats/src/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace mnm {

using namespace mnm2;

namespace {

struct FoundSection {
    std::string name;
    std::uint32_t flags;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t hash;
};

/// A named range of the file.
struct Extent {
    std::string_view name;
    std::uint64_t offset;
    std::uint64_t size;
};

/// What the functions below share: the file, and where its sections lie.
struct Source {
    const std::string& path;
    std::span<const std::byte> bytes;
    std::vector<FoundSection> sections;

    const FoundSection* find(std::string_view name) const {
        for (const FoundSection& section : sections)
            if (section.name == name) return &section;
        return nullptr;
    }
};

Error damaged(const Source& source, std::string_view what, std::uint64_t found,
              std::uint64_t expected) {
    return Error{fmt::format("{}: {} is damaged: its checksum is {:016x}, expected {:016x}",
                             source.path, what, found, expected)};
}

Result<void> check_apart(const Source& source, std::vector<Extent> extents, std::string_view kind) {
    std::sort(extents.begin(), extents.end(),
              [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    for (std::size_t i = 1; i < extents.size(); ++i) {
        const Extent& a = extents[i - 1];
        const Extent& b = extents[i];
        if (b.offset < a.offset + a.size)
            return Error{fmt::format("{}: {} {} begins at byte {}, inside {}", source.path, kind,
                                     b.name, b.offset, a.name)};
    }
    return {};
}

Result<void> read_table(Source& source) {
    const std::span<const std::byte> bytes = source.bytes;
    if (bytes.size() < header_size)
        return Error{fmt::format("{}: the file has {} bytes, expected at least {} for the header "
                                 "of a model",
                                 source.path, bytes.size(), header_size)};
    const std::uint64_t hash = checksum(bytes.first(header_size - 8));
    const std::uint64_t expected = load<std::uint64_t>(bytes, header_size - 8);
    if (hash != expected) return damaged(source, "the header", hash, expected);
    const std::uint32_t count = load<std::uint32_t>(bytes, 12);
    const std::uint64_t table = load<std::uint64_t>(bytes, 16);
    const std::uint64_t file_size = load<std::uint64_t>(bytes, 24);
    if (file_size != bytes.size())
        return Error{fmt::format("{}: the file has {} bytes, its header says {}", source.path,
                                 bytes.size(), file_size)};
    if (count > max_sections)
        return Error{fmt::format("{}: the header counts {} sections, expected at most {}",
                                 source.path, count, max_sections)};
    const std::uint64_t table_size = count * section_entry_size;
    if (table < header_size || !inside(table, table_size + 8, bytes.size()))
        return Error{fmt::format("{}: the section table lies at byte {}, outside of the file",
                                 source.path, table)};
    const auto entries =
        bytes.subspan(static_cast<std::size_t>(table), static_cast<std::size_t>(table_size));
    const std::uint64_t table_hash = checksum(entries);
    const std::uint64_t table_expected = load<std::uint64_t>(bytes, table + table_size);
    if (table_hash != table_expected)
        return damaged(source, "the section table", table_hash, table_expected);

    for (std::uint64_t at = 0; at < table_size; at += section_entry_size) {
        FoundSection section;
        section.name =
            printable(fixed_text(entries.subspan(static_cast<std::size_t>(at), section_name_size)));
        section.flags = load<std::uint32_t>(entries, at + 16);
        section.offset = load<std::uint64_t>(entries, at + 24);
        section.size = load<std::uint64_t>(entries, at + 32);
        section.hash = load<std::uint64_t>(entries, at + 40);
        if (!inside(section.offset, section.size, bytes.size()))
            return Error{fmt::format("{}: section {} has {} bytes at byte {}, outside of the file",
                                     source.path, section.name, section.size, section.offset)};
        if (source.find(section.name) != nullptr)
            return Error{fmt::format("{}: there are two sections {}", source.path, section.name)};
        source.sections.push_back(std::move(section));
    }
    std::vector<Extent> extents = {{"the header", 0, header_size},
                                   {"the section table", table, table_size + 8}};
    for (const FoundSection& section : source.sections)
        extents.push_back({section.name, section.offset, section.size});
    return check_apart(source, std::move(extents), "section");
}

Result<void> check_known(const Source& source) {
    constexpr std::string_view known[] = {config_section,   tokenizer_section, template_section,
                                          sampling_section, metadata_section,  weights_section,
                                          tensors_section};
    for (const FoundSection& section : source.sections)
        if ((section.flags & required) != 0 &&
            std::find(std::begin(known), std::end(known), section.name) == std::end(known))
            return Error{fmt::format("{}: section {} is not supported, and the file says that it "
                                     "cannot be read without it",
                                     source.path, section.name)};
    for (const std::string_view name : {config_section, weights_section, tensors_section})
        if (source.find(name) == nullptr)
            return Error{fmt::format("{}: section {} is missing", source.path, name)};
    return {};
}

/// The verified bytes of a small section; empty where there is none.
Result<std::span<const std::byte>> content(const Source& source, std::string_view name,
                                           std::uint64_t limit) {
    const FoundSection* section = source.find(name);
    if (section == nullptr) return std::span<const std::byte>{};
    if (section->size > limit)
        return Error{fmt::format("{}: section {} has {} bytes, expected at most {}", source.path,
                                 name, section->size, limit)};
    const auto bytes = source.bytes.subspan(static_cast<std::size_t>(section->offset),
                                            static_cast<std::size_t>(section->size));
    const std::uint64_t hash = checksum(bytes);
    if (hash != section->hash)
        return damaged(source, fmt::format("section {}", name), hash, section->hash);
    return bytes;
}

Result<void> read_details(const Source& source, ModelDetails& details) {
    MNM_TRY(const auto config, content(source, config_section, json_limit));
    MNM_CHECK(parse_config(as_text(config), source.path, details));
    MNM_TRY(const auto tokenizer, content(source, tokenizer_section, blob_limit));
    details.tokenizer.assign(tokenizer.begin(), tokenizer.end());
    // parse_tokenizer() checks the rest when someone needs it.
    if (!tokenizer.empty() && tokenizer.size() >= 12 &&
        load<std::uint32_t>(tokenizer, 8) != details.config.vocab)
        return Error{fmt::format("{}: the tokenizer has {} tokens, expected {} as the model",
                                 source.path, load<std::uint32_t>(tokenizer, 8),
                                 details.config.vocab)};
    MNM_TRY(const auto text, content(source, template_section, text_limit));
    details.chat_template = as_text(text);
    MNM_TRY(const auto sampling, content(source, sampling_section, json_limit));
    if (source.find(sampling_section) != nullptr) {
        MNM_TRY(details.sampling, parse_sampling(as_text(sampling), source.path));
    }
    MNM_TRY(const auto metadata, content(source, metadata_section, blob_limit));
    if (source.find(metadata_section) != nullptr) {
        MNM_TRY(details.metadata, parse_metadata(as_text(metadata), source.path));
    }
    return {};
}

/// One entry of the tensor directory, checked against the tensor that the config calls for.
Result<TensorView> read_tensor(const Source& source, std::span<const std::byte> entry,
                               const PlannedTensor& expected, const FoundSection& weights,
                               Extent& extent) {
    const std::string_view name = expected.name;
    const auto wrong = [&](std::string_view what, const auto& found, const auto& wanted) {
        return Error{fmt::format("{}: tensor {}: {} is {}, expected {}", source.path, name, what,
                                 found, wanted)};
    };
    const std::string_view codec_name =
        fixed_text(entry.subspan(tensor_name_size, codec_name_size));
    const Codec* codec = find_codec(codec_name);
    if (codec == nullptr)
        return Error{fmt::format("{}: tensor {}: type {} is not supported", source.path, name,
                                 printable(codec_name))};
    const std::size_t fields = tensor_name_size + codec_name_size;
    const std::uint64_t rows = load<std::uint64_t>(entry, fields);
    const std::uint64_t cols = load<std::uint64_t>(entry, fields + 8);
    const std::uint64_t offset = load<std::uint64_t>(entry, fields + 16);
    const std::uint64_t size = load<std::uint64_t>(entry, fields + 24);
    const std::uint64_t hash = load<std::uint64_t>(entry, fields + 32);
    if (rows != expected.rows) return wrong("rows", rows, expected.rows);
    if (cols != expected.cols) return wrong("cols", cols, expected.cols);
    if (rows == 1 && codec->type != WeightType::f32)
        return wrong("type", codec_name, "f32 for a norm");
    const Planes want = planes(*codec, rows, cols);
    if (size != want.stored()) return wrong("bytes", size, want.stored());
    if (offset % section_align != 0) return wrong("offset", offset, "a multiple of 64");
    if (offset < weights.offset || !inside(offset, size, weights.offset + weights.size))
        return wrong("offset", offset, "a place inside section weights");
    extent = {name, offset, size};
    const std::byte* data = source.bytes.data() + offset;
    return TensorView{expected.name, codec,
                      rows,          cols,
                      data,          want.scales != 0 ? data + want.scales_offset() : nullptr,
                      hash};
}

Result<void> read_tensors(const Source& source, ModelFile& model) {
    const ModelConfig& config = model.details.config;
    const FoundSection& weights = *source.find(weights_section);
    const std::uint64_t count = 6 * config.layers + 2 + (config.tied_head ? 0 : 1);
    const std::uint64_t found = source.find(tensors_section)->size;
    if (found != count * tensor_entry_size)
        return Error{fmt::format("{}: section tensors has {} bytes, expected {} for the {} tensors "
                                 "of its config",
                                 source.path, found, count * tensor_entry_size, count)};
    MNM_TRY(const auto directory, content(source, tensors_section, found));

    const std::vector<PlannedTensor> expected = standard_tensors(config, codec(WeightType::f32));
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < expected.size(); ++i)
        places[expected[i].name] = i;
    std::vector<Extent> extents(expected.size());
    model.tensors.resize(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto entry = directory.subspan(i * tensor_entry_size, tensor_entry_size);
        const std::string_view name = fixed_text(entry.first(tensor_name_size));
        const auto place = places.find(name);
        if (place == places.end())
            return Error{fmt::format("{}: tensor {} is unknown, or there twice", source.path,
                                     printable(name))};
        const std::size_t to = place->second;
        MNM_TRY(model.tensors[to], read_tensor(source, entry, expected[to], weights, extents[to]));
        places.erase(place);
    }
    return check_apart(source, std::move(extents), "tensor");
}

} // namespace

bool probe_mnm2(std::span<const std::byte> file) {
    return starts_with(file, magic);
}

Result<ModelFile> open_mnm2(std::shared_ptr<const MappedFile> file) {
    ModelFile model;
    model.mapping = std::move(file);
    Source source{model.path(), model.mapping->bytes(), {}};
    MNM_CHECK(read_table(source));
    MNM_CHECK(check_known(source));
    MNM_CHECK(read_details(source, model.details));
    MNM_CHECK(read_tensors(source, model));
    return model;
}

Tensors list_mnm2(std::shared_ptr<const MappedFile> file) {
    MNM_TRY(ModelFile model, open_mnm2(std::move(file)));
    return std::move(model.tensors);
}

} // namespace mnm
