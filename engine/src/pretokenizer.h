// SPDX-License-Identifier: MIT
// The chunk rule: where text is cut before byte pairs are merged.
#pragma once

#include <cstddef>
#include <string_view>

namespace mnm {

/// Length of the chunk at the front of `text` (not empty). A run of white space is looked at three
/// times at most, everything else once, so cutting a whole text is linear.
std::size_t chunk_length(std::string_view text) noexcept;

} // namespace mnm
