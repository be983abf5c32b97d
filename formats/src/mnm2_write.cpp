// SPDX-License-Identifier: MIT
// Writing version 2 files. Every size is known before the first byte, so the file streams through
// in one pass; only the checksums are learnt on the way, which is why both directories come last.
#include "formats/src/codecs.h"
#include "formats/src/formats.h"
#include "formats/src/mnm2_layout.h"

#include <fmt/format.h>

#include <memory>

namespace mnm {

using namespace mnm2;

namespace {

struct PlannedSection {
    std::string_view name;
    std::uint32_t flags = 0;
    std::vector<std::byte> content; ///< of the small ones
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t hash = 0;
};

struct Layout {
    std::vector<PlannedSection> sections;
    std::uint64_t table = 0; ///< its offset
    std::uint64_t file_size = 0;
};

Result<Layout> plan_layout(const WritePlan& plan, const std::string& path) {
    Layout layout;
    const auto add = [&](std::string_view name, std::uint32_t flags,
                         std::span<const std::byte> content, std::uint64_t limit) -> Result<void> {
        if (content.size() > limit)
            return Error{fmt::format("{}: section {} has {} bytes, expected at most {}", path, name,
                                     content.size(), limit)};
        layout.sections.push_back(
            {name, flags, {content.begin(), content.end()}, 0, content.size()});
        return {};
    };
    const ModelDetails& details = plan.details;
    MNM_CHECK(add(config_section, required, as_bytes(config_text(details)), json_limit));
    if (!details.tokenizer.empty())
        MNM_CHECK(add(tokenizer_section, 0, details.tokenizer, blob_limit));
    if (!details.chat_template.empty())
        MNM_CHECK(add(template_section, 0, as_bytes(details.chat_template), text_limit));
    if (details.sampling)
        MNM_CHECK(add(sampling_section, 0, as_bytes(sampling_text(*details.sampling)), json_limit));
    if (!details.metadata.empty()) {
        MNM_TRY(const std::string text, metadata_text(details.metadata, path));
        MNM_CHECK(add(metadata_section, 0, as_bytes(text), blob_limit));
    }
    std::uint64_t weights = 0;
    for (const PlannedTensor& tensor : plan.tensors)
        weights += planes(*tensor.codec, tensor.rows, tensor.cols).stored();
    layout.sections.push_back({weights_section, required | parts_checksums, {}, 0, weights});
    layout.sections.push_back(
        {tensors_section, required, {}, 0, plan.tensors.size() * tensor_entry_size});

    std::uint64_t offset = header_size;
    for (PlannedSection& section : layout.sections) {
        const bool weights_here = section.name == weights_section;
        section.offset = round_up(offset, weights_here ? weights_align : section_align);
        offset = section.offset + section.size;
    }
    layout.table = round_up(offset, section_align);
    layout.file_size = layout.table + layout.sections.size() * section_entry_size + 8;
    return layout;
}

std::vector<std::byte> header_of(const Layout& layout) {
    std::vector<std::byte> header;
    append_fixed_text(header, magic, magic.size());
    append(header, minor_version);
    append(header, static_cast<std::uint32_t>(layout.sections.size()));
    append(header, layout.table);
    append(header, layout.file_size);
    header.resize(header_size - 8);
    append(header, checksum(header));
    return header;
}

std::vector<std::byte> table_of(const Layout& layout) {
    std::vector<std::byte> table;
    for (const PlannedSection& section : layout.sections) {
        append_fixed_text(table, section.name, section_name_size);
        append(table, section.flags);
        append(table, std::uint32_t{0});
        append(table, section.offset);
        append(table, section.size);
        append(table, section.hash);
    }
    append(table, checksum(table));
    return table;
}

/// Writes all tensors and returns the directory that describes them.
Result<std::vector<std::byte>> write_weights(AtomicFile& out, const WritePlan& plan,
                                             const EncodeRows& encode, std::uint64_t offset) {
    std::vector<std::byte> directory;
    const std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state(XXH64_createState(),
                                                                           XXH64_freeState);
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const PlannedTensor& tensor = plan.tensors[i];
        XXH64_reset(state.get(), 0);
        MNM_CHECK(write_tensor(out, tensor, i, encode, [&](std::span<const std::byte> bytes) {
            if (!bytes.empty()) XXH64_update(state.get(), bytes.data(), bytes.size());
        }));
        const std::uint64_t size = planes(*tensor.codec, tensor.rows, tensor.cols).stored();
        append_fixed_text(directory, tensor.name, tensor_name_size);
        append_fixed_text(directory, tensor.codec->name, codec_name_size);
        for (const std::uint64_t field : {tensor.rows, tensor.cols, offset, size})
            append(directory, field);
        append(directory, std::uint64_t{XXH64_digest(state.get())});
        offset += size;
    }
    return directory;
}

} // namespace

Result<void> write_mnm2(AtomicFile& out, const WritePlan& plan, const EncodeRows& encode) {
    MNM_CHECK(check_standard_plan(plan, out.path()));
    MNM_TRY(Layout layout, plan_layout(plan, out.path()));
    const std::uint64_t start = out.size();
    MNM_CHECK(out.write(header_of(layout)));
    std::vector<std::byte> directory;
    for (PlannedSection& section : layout.sections) {
        MNM_CHECK(out.write_zeros(section.offset - (out.size() - start)));
        if (section.name == weights_section) {
            MNM_TRY(directory, write_weights(out, plan, encode, section.offset));
            continue;
        }
        const std::vector<std::byte>& content =
            section.name == tensors_section ? directory : section.content;
        section.hash = checksum(content);
        MNM_CHECK(out.write(content));
    }
    MNM_CHECK(out.write_zeros(layout.table - (out.size() - start)));
    return out.write(table_of(layout));
}

} // namespace mnm
