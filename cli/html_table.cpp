// SPDX-License-Identifier: MIT
// A table of text cells.
#include "cli/html_table.h"

#include "cli/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mnm::cli {

std::string HtmlTable::html() const {
    const auto row = [&](const std::vector<std::string>& cells, const char* tag) {
        std::string text;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            text += fmt::format("<{}{}>{}</{}>", tag, i >= numbers ? " class=\"n\"" : "",
                                html_text(cells[i]), tag);
        }
        return text;
    };
    // Paper cannot scroll: many columns are set smaller there.
    const char* wide = head.size() > 11 ? " class=\"wide\"" : "";
    std::string html =
        fmt::format("<div class=\"scroll\" tabindex=\"0\"><table{}>\n<thead><tr>", wide) +
        row(head, "th") + "</tr></thead>\n<tbody>\n";
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool stands_out = std::find(marked.begin(), marked.end(), i) != marked.end();
        html += (stands_out ? "<tr class=\"marked\">" : "<tr>") + row(rows[i], "td") + "</tr>\n";
    }
    return html + "</tbody></table></div>\n";
}

std::string cell(double value, const char* format) {
    if (std::isnan(value)) return "-";
    return fmt::format(fmt::runtime(format), value);
}

} // namespace mnm::cli
