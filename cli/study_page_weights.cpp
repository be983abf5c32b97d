// SPDX-License-Identifier: MIT
// The page's sections on weights: the rate-distortion curves, and the quantisers behind them.
#include "cli/html_table.h"
#include "cli/report.h"
#include "cli/study_page.h"
#include "cli/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mnm::cli {
namespace {

Chart rate_chart(const Study& s, const char* title, const char* label,
                 double RatePoint::*distortion) {
    Chart chart{title, "bits per weight, scales and norms included", label, false, true, {}};
    for (const RateCurve& curve : s.curves) {
        ChartSeries series{curve.name, {}, curve.points.front().bits != 0, true, {}, {}};
        // f32 and f16 lie far to the right of everything that is of interest.
        for (std::size_t i = 0; i < curve.points.size(); ++i) {
            const RatePoint& p = curve.points[i];
            if (p.bits_per_weight > 12) continue;
            if (curve.knee && curve.knee->index == i) series.knee = series.points.size();
            series.points.emplace_back(p.bits_per_weight, p.*distortion);
            if (p.bits == 0) series.labels.push_back(p.name);
        }
        chart.series.push_back(std::move(series));
    }
    return chart;
}

/// A line for each curve's knee.
std::string knees(const Study& s) {
    HtmlTable table{
        {"curve", "knee", "bits per weight", "KL, bits", "the rate below it", "its KL"}, {}, 2, {}};
    for (const RateCurve& curve : s.curves) {
        if (!curve.knee) continue;
        const RatePoint& knee = curve.points[curve.knee->index];
        std::vector<std::string> row = {curve.name,
                                        knee.name,
                                        cell(knee.bits_per_weight, "{:.3f}"),
                                        cell(knee.kl_bits, "{:.6f}"),
                                        "-",
                                        "-"};
        if (const auto before = curve.knee->before) {
            row[4] = curve.points[*before].name;
            row[5] = cell(curve.points[*before].kl_bits, "{:.6f}");
        }
        table.rows.push_back(row);
    }
    return table.html();
}

std::string rate_table(const Study& s) {
    HtmlTable table{{"weights", "bits per weight", "perplexity", "KL, bits", "same first choice",
                     "weights, Mbit", "corpus, bits", "together, Mbit"},
                    {},
                    1,
                    {}};
    for (const RateCurve& curve : s.curves) {
        for (std::size_t i = 0; i < curve.points.size(); ++i) {
            const RatePoint& p = curve.points[i];
            if (curve.knee && curve.knee->index == i) table.marked.push_back(table.rows.size());
            table.rows.push_back(
                {p.name, cell(p.bits_per_weight, "{:.3f}"), cell(p.perplexity, "{:.4f}"),
                 cell(p.kl_bits, "{:.6f}"), cell(100 * p.top1_agreement, "{:.2f} %"),
                 cell(p.length.weights / 1e6, "{:.3f}"), cell(p.length.corpus, "{:.1f}"),
                 cell(p.length.total() / 1e6, "{:.3f}")});
        }
    }
    return table.html();
}

std::string shortest_description(const Study& s) {
    const RatePoint* best = nullptr;
    for (const RateCurve& curve : s.curves)
        for (const RatePoint& p : curve.points)
            if (best == nullptr || p.length.total() < best->length.total()) best = &p;
    return paragraph(fmt::format(
        "Two-part code: bits of the weights, then bits of the corpus with their help. The shortest "
        "here is {}: {:.0f} + {:.0f} bits. Without any model the {} targets take {:.0f} bits. (A "
        "corpus this small never pays for its model; the column shows what each rate adds to it.)",
        best->name, best->length.weights, best->length.corpus, grouped(s.targets),
        s.raw_corpus_bits));
}

/// Mean over the matrices.
std::vector<double> mean_snr(const Study& s, std::size_t granularity) {
    std::vector<double> mean(s.bits.size());
    for (std::size_t b = 0; b < mean.size(); ++b) {
        double sum = 0, count = 0;
        for (const MatrixStudy& m : s.matrices) {
            if (!std::isfinite(m.snr_db[granularity][b])) continue;
            sum += m.snr_db[granularity][b];
            ++count;
        }
        mean[b] = sum / count;
    }
    return mean;
}

std::string snr_part(const Study& s) {
    Chart chart{"Mean SNR of the matrices against bits",
                "bits",
                "SNR, dB (mean over matrices)",
                false,
                false,
                {}};
    HtmlTable table{{"scale"}, {}, 1, {}};
    for (const int b : s.bits)
        table.head.push_back(fmt::format("{} bits", b));
    table.head.push_back("dB a bit");
    const auto add = [&](const std::string& name, const std::vector<double>& snr, bool markers) {
        ChartSeries series{name, {}, true, markers, {}, {}};
        std::vector<std::string> row = {name};
        for (std::size_t b = 0; b < snr.size(); ++b) {
            series.points.emplace_back(s.bits[b], snr[b]);
            row.push_back(cell(snr[b], "{:.2f}"));
        }
        const int steps = s.bits.back() - s.bits.front();
        row.push_back(steps == 0 ? "-" : cell((snr.back() - snr.front()) / steps, "{:.2f}"));
        chart.series.push_back(std::move(series));
        table.rows.push_back(std::move(row));
    };
    const auto granularities = studied_granularities();
    for (std::size_t i = 0; i < granularities.size(); ++i)
        add(granularities[i].name(), mean_snr(s, i), true);
    std::vector<double> line(s.bits.size());
    double count = 0;
    for (const MatrixStudy& m : s.matrices) {
        if (!std::isfinite(m.magnitudes.crest())) continue;
        ++count;
        for (std::size_t b = 0; b < line.size(); ++b)
            line[b] += model_line_db(s.bits[b], m.magnitudes.crest());
    }
    for (double& v : line)
        v /= count;
    add("model line, per tensor", line, false);
    return "<h3>SNR</h3>\n" +
           paragraph("The model line is 6.02 b + 4.77 - 20 log10(crest factor): the SNR of a "
                     "uniform error under one scale per tensor.") +
           chart_svg(chart) + table.html();
}

/// Every matrix at one width, with each scale.
std::string scales_table(const Study& s) {
    HtmlTable table{{"matrix", "rows", "columns", "largest", "crest factor"}, {}, 1, {}};
    const auto granularities = studied_granularities();
    for (const Granularity& by : granularities)
        table.head.push_back(by.name());
    table.head.push_back("model line");
    const auto main = static_cast<std::size_t>(
        std::find(s.bits.begin(), s.bits.end(), s.main_bits) - s.bits.begin());
    for (const MatrixStudy& m : s.matrices) {
        std::vector<std::string> row = {m.name, grouped(m.rows), grouped(m.cols),
                                        cell(m.magnitudes.max, "{:.4f}"),
                                        cell(m.magnitudes.crest(), "{:.3f}")};
        for (std::size_t i = 0; i < granularities.size(); ++i)
            row.push_back(cell(m.snr_db[i][main], "{:.2f}"));
        row.push_back(cell(model_line_db(s.main_bits, m.magnitudes.crest()), "{:.2f}"));
        table.rows.push_back(std::move(row));
    }
    return fmt::format("<h3>Every matrix at {} bits: SNR in dB</h3>\n", s.main_bits) + table.html();
}

/// Every matrix with one scale, at each width, and what each bit gains.
std::string widths_table(const Study& s) {
    HtmlTable table{{"matrix"}, {}, 1, {}};
    for (const int b : s.bits)
        table.head.push_back(fmt::format("{} bits", b));
    for (std::size_t b = 1; b < s.bits.size(); ++b)
        table.head.push_back(fmt::format("{} to {}", s.bits[b - 1], s.bits[b]));
    for (const MatrixStudy& m : s.matrices) {
        std::vector<std::string> row = {m.name};
        for (const double snr : m.snr_db[0])
            row.push_back(cell(snr, "{:.2f}"));
        for (const double gain : gained_db(m.snr_db[0]))
            row.push_back(cell(gain, "{:.2f}"));
        table.rows.push_back(std::move(row));
    }
    return "<h3>Every matrix, one scale per tensor: SNR and gain in dB</h3>\n" + table.html();
}

std::string errors_part(const Study& s) {
    std::vector<std::string> labels;
    std::vector<double> shares;
    const PooledErrors& first = s.errors.front().errors;
    for (std::size_t i = 0; i < PooledErrors::bins; ++i) {
        labels.push_back(fmt::format(
            "{:.3f}",
            (static_cast<double>(i) + 0.5) / static_cast<double>(PooledErrors::bins) - 0.5));
        shares.push_back(100 * static_cast<double>(first.histogram()[i]) /
                         static_cast<double>(std::max<std::uint64_t>(first.count(), 1)));
    }
    HtmlTable table{
        {"scale", "errors", "mean", "12 mean square", "12 variance", "largest"}, {}, 1, {}};
    for (const ErrorStudy& e : s.errors) {
        table.rows.push_back(
            {e.granularity.name(), grouped(e.errors.count()), cell(e.errors.mean(), "{:.6f}"),
             cell(e.errors.twelve_mean_square(), "{:.4f}"),
             cell(e.errors.twelve_variance(), "{:.4f}"), cell(e.errors.max(), "{:.4f}")});
    }
    return fmt::format("<h3>Errors in steps, {} bits</h3>\n", s.main_bits) +
           paragraph("(weight - quantised weight) / scale, all matrices together. Errors spread "
                     "evenly over a step have mean 0 and 12 mean square = 1. The bars: per tensor, "
                     "per cent of all weights.") +
           bars_svg("Histogram of the errors in steps", labels, shares,
                    "error / step (each bar a twentieth of a step)") +
           table.html();
}

std::string grids_part(const Study& s) {
    HtmlTable table{
        {"grid", "word", "rounding", "overflow", "SNR, dB", "weights that overflow"}, {}, 4, {}};
    for (const GridStudy& g : s.grids) {
        table.rows.push_back({g.grid.name(), std::to_string(g.grid.word()),
                              g.grid.rounding == Rounding::nearest ? "nearest" : "floor",
                              g.grid.overflow == Overflow::saturate ? "saturate" : "wrap",
                              cell(g.snr_db, "{:.3f}"), grouped(g.overflows)});
    }
    return "<h3>Fixed-point grids</h3>\n" +
           paragraph("Qi.f: a sign, i whole and f fractional bits; all matrices together, no scale "
                     "at all.") +
           table.html();
}

} // namespace

std::string rate_section(const StudyResult& result) {
    const Study& s = result.study;
    return section(
        "rate", "Rate and distortion",
        paragraph(fmt::format(
            "KL is the mean divergence from the unquantised model over the targets, in bits. The "
            "knee (ringed) is the smallest rate whose KL is at most {} times the floor: the least "
            "KL of the curve, but no less than {} bits.",
            s.knee_rule.factor, s.knee_rule.least_floor)) +
            chart_svg(rate_chart(s, "KL against bits per weight", "mean KL, bits a token",
                                 &RatePoint::kl_bits)) +
            knees(s) +
            chart_svg(rate_chart(s, "Perplexity against bits per weight", "perplexity",
                                 &RatePoint::perplexity)) +
            rate_table(s) +
            paragraph("f32, q8 and q4 are run through the products that a chat uses, which round "
                      "their inputs to 8 bits; the other rows have float inputs.") +
            shortest_description(s));
}

std::string quantizer_section(const StudyResult& result) {
    const Study& s = result.study;
    return section("quantizers", "Quantisers",
                   snr_part(s) + scales_table(s) + widths_table(s) + errors_part(s) +
                       grids_part(s));
}

} // namespace mnm::cli
