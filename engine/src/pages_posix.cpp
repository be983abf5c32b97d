// SPDX-License-Identifier: MIT
// Pages by mmap.
#include "engine/src/pages.h"

#include <sys/mman.h>

namespace mnm {

void* take_pages(std::size_t bytes, PageSize size) noexcept {
    void* pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
    if (size == PageSize::huge) ::madvise(pages, bytes, MADV_HUGEPAGE);
#else
    static_cast<void>(size);
#endif
    return pages;
}

void give_back_pages(void* pages, std::size_t bytes) noexcept {
    ::munmap(pages, bytes);
}

} // namespace mnm
