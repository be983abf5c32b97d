// SPDX-License-Identifier: MIT
// Memory straight from the system, which clears each page when it is first touched.
#pragma once

#include <cstddef>

namespace mnm {

enum class PageSize {
    normal,
    /// 2 MiB where the system gives them unasked for a privilege (Linux); normal elsewhere. For
    /// what will be filled and read from end to end: the first touch clears all of one.
    huge
};

/// Zeros, at a multiple of the page size; null when there are none. The caller gives them back.
void* take_pages(std::size_t bytes, PageSize size) noexcept;
/// `bytes` as they were asked for.
void give_back_pages(void* pages, std::size_t bytes) noexcept;

} // namespace mnm
