// SPDX-License-Identifier: MIT
// Charts as inline SVG.
#include "cli/svg_chart.h"

#include "cli/report.h"
#include "cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mnm::cli {
namespace {

constexpr double width = 640, height = 380;
constexpr double left = 76, right = 20, top = 34, bottom = 56;
constexpr std::size_t colours = 7;

struct Axis {
    bool log = false;
    double low = 0;
    double high = 1;
    std::vector<double> ticks;

    bool shows(double v) const { return std::isfinite(v) && (!log || v > 0); }
    double place(double v) const {
        return log ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    }
};

/// 1, 2 or 5 times a power of ten, so that about `count` steps fill `range`.
double nice_step(double range, double count) {
    const double rough = range / count;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double times : {1.0, 2.0, 5.0})
        if (rough <= times * power) return times * power;
    return 10 * power;
}

Axis linear_axis(double low, double high) {
    if (high <= low) {
        const double around = std::max(1.0, std::fabs(low) / 10);
        low -= around;
        high += around;
    }
    Axis axis;
    const double step = nice_step(high - low, 7);
    const double first = std::floor(low / step), last = std::ceil(high / step);
    axis.low = first * step;
    axis.high = last * step;
    for (double i = first; i <= last; ++i)
        axis.ticks.push_back(i * step);
    return axis;
}

Axis log_axis(double low, double high) {
    Axis axis;
    axis.log = true;
    const double first = std::floor(std::log10(low) + 1e-9);
    const double last = std::max(first + 1, std::ceil(std::log10(high) - 1e-9));
    axis.low = std::pow(10.0, first);
    axis.high = std::pow(10.0, last);
    const double every = std::ceil((last - first) / 8);
    for (double e = first; e <= last; e += every)
        axis.ticks.push_back(std::pow(10.0, e));
    // Within two decades the values between are wanted too.
    if (last - first > 2) return axis;
    for (double e = first; e < last; ++e)
        for (const double times : {2.0, 5.0})
            axis.ticks.push_back(times * std::pow(10.0, e));
    std::sort(axis.ticks.begin(), axis.ticks.end());
    return axis;
}

Axis axis_of(const Chart& chart, bool x) {
    const bool log = x ? chart.log_x : chart.log_y;
    const Axis kind{log, 0, 1, {}};
    const Axis other{x ? chart.log_y : chart.log_x, 0, 1, {}};
    double low = 0, high = 0;
    bool any = false;
    for (const ChartSeries& series : chart.series) {
        for (const auto& [px, py] : series.points) {
            const double v = x ? px : py, w = x ? py : px;
            if (!kind.shows(v) || !other.shows(w)) continue;
            low = any ? std::min(low, v) : v;
            high = any ? std::max(high, v) : v;
            any = true;
        }
    }
    if (!any) return {log, 0, 0, {}};
    return log ? log_axis(low, high) : linear_axis(low, high);
}

std::string tick_text(double v) {
    const double m = std::fabs(v);
    if (m >= 1e12) return fmt::format("{:.4g}T", v / 1e12);
    if (m >= 1e9) return fmt::format("{:.4g}G", v / 1e9);
    if (m >= 1e6) return fmt::format("{:.4g}M", v / 1e6);
    if (m >= 1e4) return fmt::format("{:.4g}k", v / 1e3);
    return fmt::format("{:.4g}", m < 1e-12 ? 0.0 : v);
}

double across(const Axis& axis, double v) {
    return left + axis.place(v) * (width - left - right);
}
double down(const Axis& axis, double v) {
    return height - bottom - axis.place(v) * (height - top - bottom);
}

std::string frame(const Axis& x, const Axis& y, const std::string& x_label,
                  const std::string& y_label) {
    std::string svg;
    for (const double v : y.ticks) {
        const double at = down(y, v);
        svg += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>"
                           "<text x=\"{}\" y=\"{:.1f}\" class=\"end\">{}</text>\n",
                           left, at, width - right, at, left - 8, at + 5, tick_text(v));
    }
    for (const double v : x.ticks) {
        const double at = across(x, v);
        svg += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\"/>"
                           "<text x=\"{:.1f}\" y=\"{}\" class=\"mid\">{}</text>\n",
                           at, top, at, height - bottom, at, height - bottom + 20, tick_text(v));
    }
    return svg + fmt::format("<text x=\"{}\" y=\"{}\" class=\"mid axis\">{}</text>"
                             "<text x=\"4\" y=\"18\" class=\"axis\">{}</text>\n",
                             (left + width - right) / 2, height - 8, html_text(x_label),
                             html_text(y_label));
}

/// Finds room for labels beside their points: one that has none is left out.
class Labels {
  public:
    /// SVG of the text; empty without room.
    std::string place(double x, double y, const std::string& text) {
        if (text.empty()) return {};
        const double wide = 7.0 * static_cast<double>(text.size()), tall = 13;
        for (const double dy : {-6.0, 18.0, -20.0, 32.0, -34.0, 46.0}) {
            for (const bool end : {false, true}) {
                const double at = end ? x - 9 - wide : x + 9;
                const Box box{at, y + dy - tall, at + wide, y + dy};
                if (!free(box)) continue;
                taken_.push_back(box);
                return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"point{}\">{}</text>",
                                   end ? x - 9 : x + 9, y + dy, end ? " end" : "", html_text(text));
            }
        }
        return {};
    }

  private:
    struct Box {
        double left, top, right, bottom;
    };
    bool free(const Box& box) const {
        if (box.left < left || box.right > width || box.top < 0 || box.bottom > height - bottom)
            return false;
        return std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) {
            return box.left < other.right && other.left < box.right && box.top < other.bottom &&
                   other.top < box.bottom;
        });
    }
    std::vector<Box> taken_;
};

/// A shape of its own for each series.
std::string marker(std::size_t series, double x, double y) {
    switch (series % colours) {
    case 0:
        return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"/>", x, y);
    case 1:
        return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\"/>", x - 4,
                           y - 4);
    case 2:
        return fmt::format("<path d=\"M{:.1f} {:.1f}l5 9h-10z\"/>", x, y - 5.5);
    case 3:
        return fmt::format("<path d=\"M{:.1f} {:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z\"/>", x, y - 5.5);
    case 4:
        return fmt::format("<path d=\"M{:.1f} {:.1f}l5 -9h-10z\"/>", x, y + 5.5);
    case 5:
        return fmt::format("<path class=\"open\" d=\"M{0:.1f} {1:.1f}l8 8m-8 0l8 -8\"/>", x - 4,
                           y - 4);
    default:
        return fmt::format("<path class=\"open\" d=\"M{0:.1f} {1:.1f}h9m-4.5 -4.5v9\"/>", x - 4.5,
                           y);
    }
}

std::string open_svg(const std::string& title) {
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width,
                       height, html_text(title));
}

std::string series_svg(const ChartSeries& series, std::size_t index, const Axis& x, const Axis& y,
                       Labels& labels) {
    std::string path, shapes;
    for (std::size_t i = 0; i < series.points.size(); ++i) {
        const auto [px, py] = series.points[i];
        if (!x.shows(px) || !y.shows(py)) continue;
        const double ax = across(x, px), ay = down(y, py);
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", ax, ay);
        if (series.markers) shapes += marker(index, ax, ay);
        if (series.knee == i) {
            shapes += fmt::format("<circle class=\"knee\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"10\"/>",
                                  ax, ay);
        }
        if (i < series.labels.size()) shapes += labels.place(ax, ay, series.labels[i]);
    }
    std::string svg = fmt::format("<g class=\"s{}\">", index % colours);
    if (series.line) svg += fmt::format("<path class=\"line\" d=\"{}\"/>", path);
    return svg + shapes + "</g>\n";
}

std::string legend(const Chart& chart) {
    std::string html = "<ul class=\"legend\">";
    bool knee = false;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        const ChartSeries& series = chart.series[i];
        knee = knee || series.knee.has_value();
        html += fmt::format("<li><svg viewBox=\"0 0 28 14\"><g class=\"s{}\">{}{}</g></svg>{}</li>",
                            i % colours, series.line ? "<path class=\"line\" d=\"M0 7H28\"/>" : "",
                            series.markers ? marker(i, 14, 7) : "", html_text(series.name));
    }
    if (knee) {
        html += "<li><svg viewBox=\"0 0 28 24\"><circle class=\"knee\" cx=\"14\" cy=\"12\" "
                "r=\"10\"/></svg>knee</li>";
    }
    return html + "</ul>\n";
}

} // namespace

std::string chart_svg(const Chart& chart) {
    const Axis x = axis_of(chart, true), y = axis_of(chart, false);
    if (x.ticks.empty() || y.ticks.empty()) return {};
    std::string svg =
        "<div class=\"chart\">" + open_svg(chart.title) + frame(x, y, chart.x_label, chart.y_label);
    Labels labels;
    for (std::size_t i = 0; i < chart.series.size(); ++i)
        svg += series_svg(chart.series[i], i, x, y, labels);
    svg += "</svg></div>\n";
    return chart.series.size() > 1 ? svg + legend(chart) : svg;
}

std::string bars_svg(const std::string& title, const std::vector<std::string>& labels,
                     const std::vector<double>& values, const std::string& x_label) {
    if (values.empty()) return {};
    const Axis y = linear_axis(0, *std::max_element(values.begin(), values.end()));
    const Axis x{false, 0, 1, {}};
    std::string svg = "<div class=\"chart\">" + open_svg(title) + frame(x, y, x_label, "");
    const double step = (width - left - right) / static_cast<double>(values.size());
    svg += "<g class=\"s0\">";
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double at = left + step * static_cast<double>(i), height_to = down(y, values[i]);
        svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                           at + 1, height_to, step - 2, height - bottom - height_to);
    }
    svg += "</g>";
    for (const std::size_t i : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" class=\"mid\">{}</text>",
                           left + step * (static_cast<double>(i) + 0.5), height - bottom + 20,
                           html_text(labels[i]));
    }
    return svg + "</svg></div>\n";
}

std::string html_text(const std::string& text) {
    std::string html;
    for (const char c : without_controls(valid_utf8(text))) {
        switch (c) {
        case '&':
            html += "&amp;";
            break;
        case '<':
            html += "&lt;";
            break;
        case '>':
            html += "&gt;";
            break;
        case '"':
            html += "&quot;";
            break;
        case '\'':
            html += "&#39;";
            break;
        default:
            html += c;
        }
    }
    return html;
}

} // namespace mnm::cli
