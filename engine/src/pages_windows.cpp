// SPDX-License-Identifier: MIT
// Pages by VirtualAlloc.
#include "engine/src/pages.h"

#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

namespace mnm {

void* take_pages(std::size_t bytes, PageSize) noexcept {
    return ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void give_back_pages(void* pages, std::size_t) noexcept {
    ::VirtualFree(pages, 0, MEM_RELEASE);
}

} // namespace mnm
