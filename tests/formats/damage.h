// SPDX-License-Identifier: MIT
// Trying a reader on damaged copies of a good file: it may refuse or accept, and must return.
#pragma once

#include "tests/fixtures.h"
#include "tests/formats/synthetic.h"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <optional>

namespace mnm::tests {

/// Opens the file at a path; its outcome is an error message, or nothing when the file was
/// accepted.
using TryOpen = std::function<std::optional<std::string>(const std::string& path)>;

inline std::optional<std::string> outcome_of_model(const std::string& path) {
    const Result<ModelFile> model = open_model(path);
    if (!model) return model.error().message;
    // What was accepted lies inside the file.
    const std::span<const std::byte> bytes = model->mapping->bytes();
    const std::byte* end = bytes.data() + bytes.size();
    for (const TensorView& tensor : model->tensors) {
        BOOST_REQUIRE(tensor.data >= bytes.data());
        const std::uint64_t size = tensor.rows * tensor.codec->data_row_bytes(tensor.cols);
        BOOST_REQUIRE(size <= static_cast<std::uint64_t>(end - tensor.data));
        if (tensor.scales == nullptr) continue;
        const std::uint64_t scales = tensor.rows * tensor.codec->scale_row_bytes(tensor.cols);
        BOOST_REQUIRE(tensor.scales >= tensor.data + size);
        BOOST_REQUIRE(scales <= static_cast<std::uint64_t>(end - tensor.scales));
    }
    return std::nullopt;
}

inline void check_message(const std::string& message, const std::string& path) {
    BOOST_REQUIRE_MESSAGE(message.starts_with(path + ": "), message);
    for (const char c : message)
        BOOST_REQUIRE_MESSAGE(static_cast<unsigned char>(c) >= ' ', message);
}

/// Every length below `dense`, then one in `step` (with MNM_THIN a thirteenth of both): all of them
/// must be refused.
inline void check_truncations(const std::vector<std::byte>& good, const TryOpen& open,
                              std::size_t dense, std::size_t step) {
    const TempFolder folder;
    const std::string path = folder / "cut";
    const std::size_t part = thin() ? 13 : 1;
    for (std::size_t size = 0; size < good.size(); size += (size < dense ? 1 : step) * part) {
        write_bytes(path, {good.data(), size});
        const auto refused = open(path);
        BOOST_REQUIRE_MESSAGE(refused, "accepted when cut to " << size << " bytes");
        check_message(*refused, path);
    }
}

/// Each byte of [begin, end) changed in three ways (with MNM_THIN each third byte in one way, by
/// turns). Where `unused` is given, just the bytes it names may be changed and the file be
/// accepted.
inline void check_flips(const std::vector<std::byte>& good, const TryOpen& open, std::size_t begin,
                        std::size_t end, const std::function<bool(std::size_t)>& unused = {}) {
    const TempFolder folder;
    const std::string path = folder / "flipped";
    constexpr unsigned flips[] = {0x01, 0x80, 0xff};
    for (std::size_t at = begin; at < end; ++at)
        for (std::size_t i = 0; i < 3; ++i) {
            if (thin() && at % 9 != 3 * i) continue;
            std::vector<std::byte> bad = good;
            bad[at] ^= static_cast<std::byte>(flips[i]);
            write_bytes(path, bad);
            const auto refused = open(path);
            if (refused) check_message(*refused, path);
            if (unused)
                BOOST_REQUIRE_MESSAGE(!refused == unused(at),
                                      "byte " << at << (refused ? " refused" : " accepted"));
        }
}

/// The 64-bit field at `at` set to one hostile number after the other; all must be refused, unless
/// the number is the good one. A field of 32 bits gets the low half.
inline void check_hostile(const std::vector<std::byte>& good, const TryOpen& open, std::size_t at,
                          std::size_t width = 8, bool zero_is_fine = false) {
    const TempFolder folder;
    const std::string path = folder / "hostile";
    for (const std::uint64_t value :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{1} << 32,
          std::uint64_t{1} << 42, (std::uint64_t{1} << 60) + 1, std::uint64_t{1} << 63,
          ~std::uint64_t{0}, ~std::uint64_t{0} - 63}) {
        std::vector<std::byte> bad = good;
        std::memcpy(bad.data() + at, &value, width);
        if (bad == good || (value == 0 && zero_is_fine)) continue;
        write_bytes(path, bad);
        const auto refused = open(path);
        BOOST_REQUIRE_MESSAGE(refused, "accepted " << value << " at byte " << at);
        check_message(*refused, path);
    }
}

} // namespace mnm::tests
