// SPDX-License-Identifier: MIT
// The parts of AtomicFile that do not depend on the system.
#include "formats/atomic_file.h"

#include "formats/src/unicode.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace mnm {
namespace {

constexpr std::size_t piece = std::size_t{2} << 20;

} // namespace

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t room = piece - static_cast<std::size_t>(size_ % piece);
        const bool direct = room == piece && bytes.size() >= piece;
        const auto part =
            bytes.first(direct ? bytes.size() / piece * piece : std::min(bytes.size(), room));
        bytes = bytes.subspan(part.size());
        size_ += part.size();
        if (direct) {
            MNM_CHECK(write_through(part));
            continue;
        }
        collected_.reserve(piece);
        collected_.insert(collected_.end(), part.begin(), part.end());
        if (part.size() == room) MNM_CHECK(flush());
    }
    return {};
}

Result<void> AtomicFile::flush() {
    MNM_CHECK(write_through(collected_));
    collected_.clear();
    return {};
}

Result<void> AtomicFile::write_zeros(std::uint64_t count) {
    static constexpr std::array<std::byte, 4096> zeros{};
    while (count > 0) {
        const std::uint64_t part = std::min<std::uint64_t>(count, zeros.size());
        MNM_CHECK(write({zeros.data(), static_cast<std::size_t>(part)}));
        count -= part;
    }
    return {};
}

bool same_file(const std::string& a, const std::string& b) {
    std::error_code failed;
    const bool same = std::filesystem::equivalent(to_path(a), to_path(b), failed);
    return !failed && same;
}

} // namespace mnm
