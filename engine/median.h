// SPDX-License-Identifier: MIT
// The middle of some measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace mnm {

/// Of at least one value.
inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

} // namespace mnm
