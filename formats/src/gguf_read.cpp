// SPDX-License-Identifier: MIT
// Reading GGUF: every length is held against the bytes that are left before it is believed.
#include "formats/src/bytes.h"
#include "formats/src/formats.h"
#include "formats/src/gguf_types.h"
#include "formats/src/unicode.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_set>

namespace mnm {

namespace {

constexpr std::uint64_t gguf_header_size = 24;
constexpr std::uint32_t max_dims = 4;
constexpr std::uint64_t max_alignment = 1 << 16;
constexpr std::uint64_t max_key = 65535;

/// Bytes of a value of fixed size; 0 for texts, arrays and unknown types.
std::uint64_t value_size(GgufType type) {
    constexpr std::uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const auto number = static_cast<std::uint32_t>(type);
    return number < std::size(sizes) ? sizes[number] : 0;
}

/// Walks over the file; a step that would leave it fails.
class Cursor {
  public:
    Cursor(const std::string& path, std::span<const std::byte> bytes)
        : path_(path), bytes_(bytes) {}

    std::uint64_t offset() const { return offset_; }
    std::uint64_t left() const { return bytes_.size() - offset_; }

    template <class T>
    Result<T> read(std::string_view what) {
        if (left() < sizeof(T)) return ended(what);
        const T value = load<T>(bytes_, offset_);
        offset_ += sizeof(T);
        return value;
    }
    Result<std::span<const std::byte>> take(std::uint64_t size, std::string_view what) {
        if (size > left())
            return Error{fmt::format("{}: {} takes {} bytes at byte {}, the file has {} left",
                                     path_, what, size, offset_, left())};
        const auto part =
            bytes_.subspan(static_cast<std::size_t>(offset_), static_cast<std::size_t>(size));
        offset_ += size;
        return part;
    }
    Result<std::string_view> text(std::string_view what) {
        MNM_TRY(const std::uint64_t size, read<std::uint64_t>(what));
        MNM_TRY(const auto bytes, take(size, what));
        return as_text(bytes);
    }
    Error ended(std::string_view what) const {
        return Error{
            fmt::format("{}: the file ends at byte {}, in {}", path_, bytes_.size(), what)};
    }

  private:
    const std::string& path_;
    std::span<const std::byte> bytes_;
    std::uint64_t offset_ = 0;
};

Result<GgufArray> read_array(Cursor& cursor, const std::string& path, const std::string& key) {
    MNM_TRY(const std::uint32_t type, cursor.read<std::uint32_t>(key));
    MNM_TRY(const std::uint64_t count, cursor.read<std::uint64_t>(key));
    GgufArray array;
    array.type = static_cast<GgufType>(type);
    array.count = count;
    if (array.type == GgufType::array)
        return Error{
            fmt::format("{}: key {} is an array of arrays, which is not supported", path, key)};
    if (array.type == GgufType::string) {
        constexpr std::uint64_t least = 8; // an empty text is its length alone
        if (count > cursor.left() / least)
            return Error{fmt::format("{}: key {} announces {} texts, the file has {} bytes left",
                                     path, key, count, cursor.left())};
        array.strings.reserve(static_cast<std::size_t>(count));
        for (std::uint64_t i = 0; i < count; ++i) {
            MNM_TRY(array.strings.emplace_back(), cursor.text(key));
        }
        return array;
    }
    const std::uint64_t size = value_size(array.type);
    if (size == 0)
        return Error{fmt::format("{}: key {} is an array of the unknown type {}", path, key, type)};
    if (count > cursor.left() / size)
        return Error{fmt::format("{}: key {} announces {} values, the file has {} bytes left", path,
                                 key, count, cursor.left())};
    MNM_TRY(array.bytes, cursor.take(count * size, key));
    return array;
}

Result<GgufValue> read_value(Cursor& cursor, const std::string& path, const std::string& key) {
    MNM_TRY(const std::uint32_t type, cursor.read<std::uint32_t>(key));
    GgufValue out;
    out.type = static_cast<GgufType>(type);
    if (out.type == GgufType::string) {
        MNM_TRY(out.value, cursor.text(key));
        return out;
    }
    if (out.type == GgufType::array) {
        MNM_TRY(out.value, read_array(cursor, path, key));
        return out;
    }
    const std::uint64_t size = value_size(out.type);
    if (size == 0) return Error{fmt::format("{}: key {} has the unknown type {}", path, key, type)};
    MNM_TRY(const auto bytes, cursor.take(size, key));
    switch (out.type) {
    case GgufType::u8:
        out.value = std::uint64_t{load<std::uint8_t>(bytes, 0)};
        break;
    case GgufType::u16:
        out.value = std::uint64_t{load<std::uint16_t>(bytes, 0)};
        break;
    case GgufType::u32:
        out.value = std::uint64_t{load<std::uint32_t>(bytes, 0)};
        break;
    case GgufType::u64:
        out.value = load<std::uint64_t>(bytes, 0);
        break;
    case GgufType::i8:
        out.value = std::int64_t{load<std::int8_t>(bytes, 0)};
        break;
    case GgufType::i16:
        out.value = std::int64_t{load<std::int16_t>(bytes, 0)};
        break;
    case GgufType::i32:
        out.value = std::int64_t{load<std::int32_t>(bytes, 0)};
        break;
    case GgufType::i64:
        out.value = load<std::int64_t>(bytes, 0);
        break;
    case GgufType::f32:
        out.value = double{load<float>(bytes, 0)};
        break;
    case GgufType::f64:
        out.value = load<double>(bytes, 0);
        break;
    default:
        if (load<std::uint8_t>(bytes, 0) > 1)
            return Error{fmt::format("{}: key {} is {}, expected 0 or 1 for a bool", path, key,
                                     load<std::uint8_t>(bytes, 0))};
        out.value = load<std::uint8_t>(bytes, 0) == 1;
    }
    return out;
}

Result<void> read_values(Cursor& cursor, GgufFile& file, std::uint64_t count) {
    const std::string& path = file.mapping->path();
    std::unordered_set<std::string_view> seen;
    for (std::uint64_t i = 0; i < count; ++i) {
        MNM_TRY(const std::string_view key, cursor.text(fmt::format("key {}", i)));
        const std::string name = printable(key);
        if (key.empty() || key.size() > max_key)
            return Error{fmt::format("{}: key {} has {} bytes, expected 1 to {}", path, i,
                                     key.size(), max_key)};
        if (!seen.insert(key).second)
            return Error{fmt::format("{}: key {} is there twice", path, name)};
        MNM_TRY(GgufValue value, read_value(cursor, path, name));
        file.values.emplace_back(key, std::move(value));
    }
    const GgufValue* alignment = file.find("general.alignment");
    if (alignment == nullptr) return {};
    if (alignment->type != GgufType::u32)
        return Error{fmt::format("{}: general.alignment has type {}, expected u32", path,
                                 gguf_type_name(alignment->type))};
    file.alignment = std::get<std::uint64_t>(alignment->value);
    if (!std::has_single_bit(file.alignment) || file.alignment > max_alignment)
        return Error{fmt::format("{}: general.alignment is {}, expected a power of two up to {}",
                                 path, file.alignment, max_alignment)};
    return {};
}

/// Shape and type of a tensor; its offset is left to the caller.
Result<GgufTensor> read_shape(Cursor& cursor, const std::string& path, std::uint64_t index) {
    GgufTensor tensor;
    MNM_TRY(tensor.name, cursor.text(fmt::format("the name of tensor {}", index)));
    const std::string name = printable(tensor.name);
    const auto wrong = [&](std::string_view what) {
        return Error{fmt::format("{}: tensor {}: {}", path, name, what)};
    };
    if (tensor.name.empty() || tensor.name.size() > gguf_max_name)
        return wrong(fmt::format("its name has {} bytes, expected 1 to {}", tensor.name.size(),
                                 gguf_max_name));
    MNM_TRY(tensor.dims, cursor.read<std::uint32_t>(name));
    if (tensor.dims == 0 || tensor.dims > max_dims)
        return wrong(fmt::format("it has {} dimensions, expected 1 to {}", tensor.dims, max_dims));
    tensor.ne.fill(1);
    std::uint64_t elements = 1;
    for (std::uint32_t i = 0; i < tensor.dims; ++i) {
        MNM_TRY(tensor.ne[i], cursor.read<std::uint64_t>(name));
        const auto product = checked_mul(elements, tensor.ne[i]);
        if (tensor.ne[i] == 0 || !product || *product > std::uint64_t{1} << 62)
            return wrong(
                fmt::format("dimension {} is {}, which gives no sensible size", i, tensor.ne[i]));
        elements = *product;
    }
    MNM_TRY(tensor.type, cursor.read<std::uint32_t>(name));
    const GgmlType* type = find_ggml_type(tensor.type);
    if (type == nullptr) return wrong(fmt::format("type {} is not supported", tensor.type));
    if (tensor.ne[0] % type->block != 0)
        return wrong(fmt::format("it has {} columns, expected a multiple of {} for {}",
                                 tensor.ne[0], type->block, type->name));
    tensor.type_name = type->name;
    const auto bytes = checked_mul(elements / type->block, type->block_bytes);
    if (!bytes) return wrong("its size does not fit 64 bits");
    tensor.bytes = *bytes;
    return tensor;
}

Result<void> read_tensors(Cursor& cursor, GgufFile& file, std::uint64_t count) {
    const std::string& path = file.mapping->path();
    std::unordered_set<std::string_view> seen;
    std::uint64_t expected = 0; // tensors follow each other in file order, each padded
    for (std::uint64_t i = 0; i < count; ++i) {
        MNM_TRY(GgufTensor tensor, read_shape(cursor, path, i));
        const std::string name = printable(tensor.name);
        if (!seen.insert(tensor.name).second)
            return Error{fmt::format("{}: tensor {} is there twice", path, name)};
        MNM_TRY(const std::uint64_t offset, cursor.read<std::uint64_t>(name));
        if (offset != expected)
            return Error{fmt::format("{}: tensor {} has offset {}, expected {}", path, name, offset,
                                     expected)};
        const auto end = checked_add(offset, tensor.bytes);
        if (!end || *end > file.mapping->bytes().size())
            return Error{fmt::format("{}: tensor {} has {} bytes, more than the file", path, name,
                                     tensor.bytes)};
        expected = round_up(*end, file.alignment);
        file.tensors.push_back(tensor);
    }
    const std::span<const std::byte> bytes = file.mapping->bytes();
    std::uint64_t offset = round_up(cursor.offset(), file.alignment);
    for (GgufTensor& tensor : file.tensors) {
        if (!inside(offset, tensor.bytes, bytes.size()))
            return Error{fmt::format("{}: tensor {} has {} bytes at byte {}, the file ends at {}",
                                     path, printable(tensor.name), tensor.bytes, offset,
                                     bytes.size())};
        tensor.data = bytes.data() + offset;
        offset = round_up(offset + tensor.bytes, file.alignment);
    }
    // Writers pad the last tensor too, or leave that out.
    if (bytes.size() > offset)
        return Error{fmt::format("{}: {} bytes follow the last tensor, expected none", path,
                                 bytes.size() - offset)};
    return {};
}

} // namespace

bool probe_gguf(std::span<const std::byte> file) {
    return starts_with(file, gguf_magic) && file.size() >= gguf_header_size;
}

Result<GgufFile> read_gguf(std::shared_ptr<const MappedFile> mapping) {
    GgufFile file;
    file.mapping = std::move(mapping);
    const std::string& path = file.mapping->path();
    const std::span<const std::byte> bytes = file.mapping->bytes();
    if (!probe_gguf(bytes))
        return Error{fmt::format("{}: not a GGUF file: {}", path, describe_content(bytes))};
    Cursor cursor(path, bytes);
    MNM_CHECK(cursor.take(gguf_magic.size(), "the header"));
    MNM_TRY(file.version, cursor.read<std::uint32_t>("the header"));
    if (file.version != 2 && file.version != 3) {
        const bool swapped = (file.version & 0xffff) == 0;
        return Error{fmt::format("{}: GGUF version {} is not supported, expected 2 or 3{}", path,
                                 file.version, swapped ? " (a big-endian file?)" : "")};
    }
    MNM_TRY(const std::uint64_t tensors, cursor.read<std::uint64_t>("the header"));
    MNM_TRY(const std::uint64_t values, cursor.read<std::uint64_t>("the header"));
    // The least that a key with its value, and a tensor's entry, take.
    if (values > cursor.left() / 13 || tensors > cursor.left() / 32)
        return Error{fmt::format("{}: the header announces {} keys and {} tensors, the file has {} "
                                 "bytes",
                                 path, values, tensors, bytes.size())};
    MNM_CHECK(read_values(cursor, file, values));
    MNM_CHECK(read_tensors(cursor, file, tensors));
    MNM_CHECK(check_llama(file));
    return file;
}

Result<ModelFile> open_gguf(std::shared_ptr<const MappedFile> file) {
    const std::string path = file->path();
    MNM_CHECK(read_gguf(std::move(file)));
    return Error{fmt::format("{}: GGUF files are written, and described by mnm info, but not run; "
                             "expected a checkpoint or a .mnm model",
                             path)};
}

Tensors list_gguf(std::shared_ptr<const MappedFile> file) {
    MNM_TRY(const GgufFile gguf, read_gguf(std::move(file)));
    std::vector<TensorView> list;
    list.reserve(gguf.tensors.size());
    for (const GgufTensor& tensor : gguf.tensors) {
        const Codec* codec = find_codec(tensor.type_name);
        if (codec == nullptr || tensor.dims > 2)
            return Error{fmt::format(
                "{}: tensor {} is {} with {} dimensions, which is not supported",
                gguf.mapping->path(), printable(tensor.name), tensor.type_name, tensor.dims)};
        list.push_back(
            {std::string(tensor.name), codec, tensor.ne[1], tensor.ne[0], tensor.data, nullptr});
    }
    return list;
}

} // namespace mnm
