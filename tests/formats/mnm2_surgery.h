// SPDX-License-Identifier: MIT
// Version 2 files changed on purpose, with checksums that do not give it away.
#pragma once

#include "tests/formats/damage.h"

#include "formats/src/mnm2_layout.h"

#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mnm::tests {

/// A file taken apart and put together again with something changed and every checksum right.
class Surgery {
  public:
    explicit Surgery(const std::vector<std::byte>& bytes) : bytes_(bytes) {
        table_ = load<std::uint64_t>(bytes_, 16);
        count_ = load<std::uint32_t>(bytes_, 12);
    }
    std::uint64_t entry(std::string_view name) const {
        for (std::uint64_t i = 0; i < count_; ++i) {
            const std::uint64_t at = table_ + i * mnm2::section_entry_size;
            if (fixed_text(std::span(bytes_).subspan(at, 16)) == name) return at;
        }
        throw std::runtime_error("no such section");
    }
    std::uint64_t offset(std::string_view name) const {
        return load<std::uint64_t>(bytes_, entry(name) + 24);
    }
    std::uint64_t size(std::string_view name) const {
        return load<std::uint64_t>(bytes_, entry(name) + 32);
    }
    template <class T>
    Surgery& set(std::uint64_t at, const T& value) {
        std::memcpy(bytes_.data() + at, &value, sizeof value);
        return *this;
    }
    Surgery& set_text(std::uint64_t at, std::string_view text, std::size_t width) {
        std::memset(bytes_.data() + at, 0, width);
        std::memcpy(bytes_.data() + at, text.data(), text.size());
        return *this;
    }
    /// Replaces the content of a section by one that is not longer.
    Surgery& replace(std::string_view name, std::string_view text) {
        BOOST_REQUIRE(text.size() <= size(name));
        std::memcpy(bytes_.data() + offset(name), text.data(), text.size());
        return set(entry(name) + 32, std::uint64_t{text.size()});
    }
    /// Puts a longer content behind everything else.
    Surgery& append(std::string_view name, std::string_view text) {
        bytes_.resize(pad64(bytes_.size()));
        set(entry(name) + 24, std::uint64_t{bytes_.size()});
        set(entry(name) + 32, std::uint64_t{text.size()});
        append_fixed_text(bytes_, text, text.size());
        return set(24, std::uint64_t{bytes_.size()});
    }
    Surgery& flip(std::uint64_t at, unsigned bits) {
        bytes_[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(bits);
        return *this;
    }
    /// The bytes, with every checksum made right but those of the tensors.
    const std::vector<std::byte>& healed() {
        for (std::uint64_t i = 0; i < count_; ++i) {
            const std::uint64_t at = table_ + i * mnm2::section_entry_size;
            const auto offset = load<std::uint64_t>(bytes_, at + 24);
            const auto size = load<std::uint64_t>(bytes_, at + 32);
            if (load<std::uint32_t>(bytes_, at + 16) & mnm2::parts_checksums) continue;
            if (!inside(offset, size, bytes_.size())) continue;
            set(at + 40, mnm2::checksum(std::span(bytes_).subspan(offset, size)));
        }
        const std::uint64_t table_size = count_ * mnm2::section_entry_size;
        set(table_ + table_size, mnm2::checksum(std::span(bytes_).subspan(table_, table_size)));
        set(56, mnm2::checksum(std::span(bytes_).first(56)));
        return bytes_;
    }
    /// Error of the healed file; empty when it opens.
    std::string outcome() {
        healed();
        const TempFolder folder;
        write_bytes(folder / "x", bytes_);
        const auto refused = outcome_of_model(folder / "x");
        if (!refused) return {};
        check_message(*refused, folder / "x");
        return refused->substr((folder / "x").size() + 2);
    }

  private:
    std::vector<std::byte> bytes_;
    std::uint64_t table_;
    std::uint64_t count_;
};

} // namespace mnm::tests
