// SPDX-License-Identifier: MIT
// Charts as inline SVG: lines and points over linear or logarithmic axes, and bars. Colours come
// from the page's style sheet (classes s0..s6), so that light, dark and paper differ only there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mnm::cli {

struct ChartSeries {
    std::string name;
    std::vector<std::pair<double, double>> points;
    bool line = true;                ///< joined; points alone otherwise
    bool markers = true;             ///< a shape for each series, told apart without colour too
    std::optional<std::size_t> knee; ///< index of the point that gets a ring and a label
    std::vector<std::string> labels; ///< one a point, beside it; may be empty
};

struct Chart {
    std::string title; ///< read aloud
    std::string x_label;
    std::string y_label;
    bool log_x = false;
    bool log_y = false;
    std::vector<ChartSeries> series;
};

/// Points that a logarithmic axis cannot show (zero, negative) and values that are no numbers are
/// left out. An empty string when nothing is left.
std::string chart_svg(const Chart& chart);

/// One bar for each value, from 0, with the labels under the first, middle and last.
std::string bars_svg(const std::string& title, const std::vector<std::string>& labels,
                     const std::vector<double>& values, const std::string& x_label);

/// &, <, >, and both quotes replaced; invalid UTF-8 and control characters too.
std::string html_text(const std::string& text);

} // namespace mnm::cli
