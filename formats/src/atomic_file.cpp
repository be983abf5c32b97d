// SPDX-License-Identifier: MIT
// The parts of AtomicFile that do not depend on the system.
#include "formats/atomic_file.h"

#include "formats/src/unicode.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace mnm {

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
