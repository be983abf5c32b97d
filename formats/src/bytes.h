// SPDX-License-Identifier: MIT
// Little-endian fields in byte spans, and arithmetic that notices overflow.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mnm {

static_assert(std::endian::native == std::endian::little,
              "weights are used where they are mapped, so the host must be little-endian");

/// The caller has checked that the field lies inside.
template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t offset) {
    assert(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset);
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

template <class T>
void append(std::vector<std::byte>& out, const T& value) {
    out.resize(out.size() + sizeof(T));
    std::memcpy(out.data() + out.size() - sizeof(T), &value, sizeof(T));
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
    return as_text(bytes.first(std::min(bytes.size(), magic.size()))) == magic;
}

/// A field of fixed width that is filled up with NULs.
inline std::string_view fixed_text(std::span<const std::byte> field) {
    std::string_view text = as_text(field);
    return text.substr(0, std::min(text.find('\0'), text.size()));
}

inline void append_fixed_text(std::vector<std::byte>& out, std::string_view text,
                              std::size_t width) {
    assert(text.size() <= width);
    const std::span<const std::byte> bytes = as_bytes(text);
    out.insert(out.end(), bytes.begin(), bytes.end());
    out.resize(out.size() + (width - text.size()));
}

inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
    if (a != 0 && b > UINT64_MAX / a) return std::nullopt;
    return a * b;
}

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
    if (b > UINT64_MAX - a) return std::nullopt;
    return a + b;
}

/// True when [offset, offset + size) lies in a file of `total` bytes.
inline bool inside(std::uint64_t offset, std::uint64_t size, std::uint64_t total) {
    return offset <= total && size <= total - offset;
}

/// `step` is a power of two and the value far from the end of the range.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) & ~(step - 1);
}
constexpr std::uint64_t pad64(std::uint64_t value) {
    return round_up(value, 64);
}

} // namespace mnm
