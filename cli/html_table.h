// SPDX-License-Identifier: MIT
// A table of text cells in a box that scrolls by itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mnm::cli {

/// Every cell is escaped. Columns from `numbers` on are set right-aligned.
struct HtmlTable {
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    std::size_t numbers = 1;
    std::vector<std::size_t> marked; ///< rows that stand out (a knee)

    std::string html() const;
};

/// A number for a cell: `format` is fmt's, as "{:.3f}"; "-" for what is no number.
std::string cell(double value, const char* format);

} // namespace mnm::cli
