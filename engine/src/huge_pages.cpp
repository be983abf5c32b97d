// SPDX-License-Identifier: MIT
// Linux gives them on request; elsewhere they need a privilege or do not exist.
#include "engine/src/huge_pages.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace mnm {

void prefer_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef __linux__
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::uintptr_t first = (address + page - 1) / page * page;
    const std::uintptr_t end = (address + bytes) / page * page;
    if (first >= end) return;
    constexpr int collapse = 25; // MADV_COLLAPSE of Linux 6.1, newer than many C libraries
    void* start = reinterpret_cast<void*>(first);
    ::madvise(start, end - first, MADV_HUGEPAGE);
    ::madvise(start, end - first, collapse);
#endif
}

} // namespace mnm
