// SPDX-License-Identifier: MIT
// Memory that is read from end to end again and again.
#pragma once

#include <cstddef>

namespace mnm {

/// Asks the system to hold [begin, begin + bytes) in pages of megabytes, those also that are in use
/// already, which are copied. Where it cannot, nothing changes.
void prefer_huge_pages(void* begin, std::size_t bytes) noexcept;

} // namespace mnm
