// SPDX-License-Identifier: MIT
// Telling numbers from infinities and NaNs, many at a time.
#pragma once

#include <cmath>
#include <cstddef>

namespace mnm {

/// False when a value is beyond `limit`, infinite or not a number. Without an early end, so that
/// the compiler makes vectors of it: every decoded token's logits pass through here.
inline bool all_within(const float* x, std::size_t n, float limit) {
    unsigned outside = 0;
    for (std::size_t i = 0; i < n; ++i)
        outside |= std::fabs(x[i]) <= limit ? 0U : 1U;
    return outside == 0;
}

} // namespace mnm
