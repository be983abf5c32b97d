// SPDX-License-Identifier: MIT
// The page's sections on what happens while a model runs: activations, overflow, memory, single
// matrices.
#include "cli/html_table.h"
#include "cli/report.h"
#include "cli/study_page.h"
#include "cli/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mnm::cli {
namespace {

constexpr const char* site_scales[] = {"per tensor", "per token", "group of 32"};
constexpr const char* short_scales[] = {"tensor", "token", "group"};

std::string outlier_names(const SiteStudy& site) {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(site.outliers.size(), 8); ++i) {
        const std::size_t channel = site.outliers[i];
        text += fmt::format("{}{} ({:.3g})", i == 0 ? "" : ", ", channel,
                            site.ranges.channel_max[channel]);
    }
    if (site.outliers.size() > 8) text += fmt::format(" and {} more", site.outliers.size() - 8);
    return text.empty() ? "none" : text;
}

std::string sites_part(const Study& s) {
    HtmlTable ranges{{"where", "channels", "largest", "median channel", "least token", "mean token",
                      "outlier channels (largest value)"},
                     {},
                     1,
                     {}};
    HtmlTable snr{{"where"}, {}, 1, {}};
    for (const char* scale : short_scales)
        for (int b = 4; b <= 8; ++b)
            snr.head.push_back(fmt::format("{} {}", scale, b));
    Chart chart{"Mean SNR of quantised activations",
                "bits",
                "SNR, dB (mean over places)",
                false,
                false,
                {}};
    std::vector<std::vector<double>> mean(3, std::vector<double>(5));
    for (const SiteStudy& site : s.sites) {
        ranges.rows.push_back({site.name, std::to_string(site.ranges.channel_max.size()),
                               cell(site.ranges.max, "{:.4g}"),
                               cell(site.ranges.median_channel(), "{:.4g}"),
                               cell(site.ranges.token_max_low, "{:.4g}"),
                               cell(site.ranges.token_max_mean, "{:.4g}"), outlier_names(site)});
        std::vector<std::string> row = {site.name};
        for (std::size_t g = 0; g < 3; ++g) {
            for (std::size_t b = 0; b < 5; ++b) {
                row.push_back(cell(site.snr_db[g][b], "{:.2f}"));
                mean[g][b] += site.snr_db[g][b] / static_cast<double>(s.sites.size());
            }
        }
        snr.rows.push_back(std::move(row));
    }
    for (std::size_t g = 0; g < 3; ++g) {
        ChartSeries series{site_scales[g], {}, true, true, {}, {}};
        for (std::size_t b = 0; b < 5; ++b)
            series.points.emplace_back(static_cast<double>(b + 4), mean[g][b]);
        chart.series.push_back(std::move(series));
    }
    return "<h3>SNR of quantised activations, dB</h3>\n" + chart_svg(chart) + snr.html() +
           "<h3>Ranges</h3>\n" +
           paragraph("Largest magnitudes over all tokens, of the inputs of every layer's matrices "
                     "and of the residual stream as it enters a layer. An outlier channel's "
                     "maximum is more than six times that of the median channel.") +
           ranges.html();
}

std::string trials_table(const char* title, const std::vector<Trial>& trials) {
    HtmlTable table{{title, "perplexity", "KL, bits", "same first choice"}, {}, 1, {}};
    for (const Trial& t : trials) {
        table.rows.push_back({t.name, cell(t.score.perplexity, "{:.4f}"),
                              cell(t.score.kl_bits, "{:.6f}"),
                              cell(100 * t.score.top1_agreement, "{:.2f} %")});
    }
    return table.html();
}

std::string bytes_text(double bytes) {
    return grouped(static_cast<std::uint64_t>(std::llround(bytes)));
}

Chart memory_chart(const MemoryStudy& m) {
    Chart chart{
        "Bytes of weights and cache against context", "context, tokens", "bytes", true, true, {}};
    const auto add = [&](const std::string& name, bool line, auto&& bytes) {
        ChartSeries series{name, {}, line, true, {}, {}};
        for (const double context : m.contexts)
            series.points.emplace_back(context, bytes(context));
        chart.series.push_back(std::move(series));
    };
    // The caches of the first three cases, the weights of every third.
    for (std::size_t i = 0; i < 3; ++i)
        add(m.cases[i].cache + " cache", true,
            [&](double context) { return context * m.cases[i].cache_bytes_per_token; });
    for (std::size_t i = 0; i < m.cases.size(); i += 3)
        add(m.cases[i].weights + " weights", true, [&](double) { return m.cases[i].weight_bytes; });
    return chart;
}

std::string bounds_table(const MemoryStudy& m, double bandwidth,
                         std::vector<double> MemoryCase::*bounds) {
    HtmlTable table{{fmt::format("tok/s at {:.4g} GB/s", bandwidth / 1e9), "cache"}, {}, 2, {}};
    table.head.push_back("empty cache");
    for (const double context : m.contexts)
        table.head.push_back(fmt::format("{} tokens", bytes_text(context)));
    for (const MemoryCase& c : m.cases) {
        std::vector<std::string> row = {c.weights, c.cache,
                                        cell(decode_bound(bandwidth, c.weight_bytes, 0), "{:.1f}")};
        for (const double bound : c.*bounds)
            row.push_back(cell(bound, "{:.1f}"));
        table.rows.push_back(std::move(row));
    }
    return table.html();
}

std::string foldings_part(const Study& s) {
    HtmlTable table{{"KL in bits", "nothing quantised", fmt::format("W{} per row", s.main_bits),
                     fmt::format("inputs at {} per token", s.main_bits),
                     fmt::format("W{} and inputs at 8", s.main_bits)},
                    {},
                    1,
                    {}};
    for (const FoldingStudy& f : s.foldings) {
        table.rows.push_back(
            {f.name, cell(f.exact.kl_bits, "{:.2e}"), cell(f.weights.kl_bits, "{:.6f}"),
             cell(f.activations.kl_bits, "{:.6f}"), cell(f.both.kl_bits, "{:.6f}")});
    }
    return "<h3>Scales moved between neighbours</h3>\n" +
           paragraph("Each fold leaves the model's function as it is, but for rounding (first "
                     "column). Smoothing multiplies the columns of a matrix by sqrt(largest input "
                     "/ largest weight) and divides what produces those inputs: a norm, the rows "
                     "of up for down, the rows of v for o.") +
           table.html();
}

} // namespace

std::string activation_section(const StudyResult& result) {
    const Study& s = result.study;
    return section("activations", "Activations",
                   paragraph("WxAy: weights at x bits in groups of 32, the inputs of every product "
                             "at y bits; 16 means not quantised.") +
                       trials_table("quantised", s.activations) + sites_part(s));
}

std::string stale_section(const StudyResult& result) {
    const Study& s = result.study;
    HtmlTable table{{"scale / fitting scale", "overflow", "weights that overflow", "SNR, dB",
                     "perplexity", "KL, bits"},
                    {},
                    2,
                    {}};
    for (const StaleStudy& t : s.stale) {
        table.rows.push_back({cell(t.scale_share, "{:.2f}"),
                              t.overflow == Overflow::saturate ? "saturate" : "wrap",
                              grouped(t.overflows), cell(t.snr_db, "{:.3f}"),
                              cell(t.score.perplexity, "{:.4f}"), cell(t.score.kl_bits, "{:.6f}")});
    }
    return section("stale", "Saturate or wrap",
                   paragraph(fmt::format("{} at 8 bits with a scale that was measured before its "
                                         "weights grew, and the two things an integer can do that "
                                         "no longer fits.",
                                         s.stale_matrix)) +
                       table.html());
}

std::string memory_section(const StudyResult& result) {
    const MemoryStudy& m = result.memory;
    HtmlTable table{{"weights", "cache", "weight bytes a token reads", "cache bytes a token",
                     "cache overtakes at, tokens"},
                    {},
                    2,
                    {}};
    for (const MemoryCase& c : m.cases) {
        table.rows.push_back({c.weights, c.cache, bytes_text(c.weight_bytes),
                              cell(c.cache_bytes_per_token, "{:.0f}"),
                              bytes_text(c.overtaking_context)});
    }
    std::string bounds =
        "<h3>Decode bound</h3>\n" +
        paragraph("Tokens a second that reading every weight and the whole cache once allows. "
                  "Small models sit in a processor's caches and may exceed it.") +
        bounds_table(m, m.bandwidth, &MemoryCase::bounds);
    if (m.other_bandwidth) bounds += bounds_table(m, *m.other_bandwidth, &MemoryCase::other_bounds);
    return section("memory", "Memory",
                   paragraph(fmt::format("The model's own context is {} tokens. A q8 or q4 cache "
                                         "has an f32 scale for each 32 values. Where the lines "
                                         "cross, the cache overtakes the weights.",
                                         grouped(m.context))) +
                       chart_svg(memory_chart(m)) + table.html() + bounds +
                       "<h3>Quantised cache</h3>\n" +
                       trials_table("cache, groups of 32", result.study.caches));
}

std::string sensitivity_section(const StudyResult& result) {
    const Study& s = result.study;
    std::vector<Sensitivity> order = s.sensitivity;
    std::stable_sort(order.begin(), order.end(), [](const Sensitivity& a, const Sensitivity& b) {
        return a.score.kl_bits > b.score.kl_bits;
    });
    Chart chart{"KL of each matrix alone against its crest factor",
                "crest factor",
                "KL, bits, of this matrix alone",
                false,
                true,
                {}};
    ChartSeries series{"matrices", {}, false, true, {}, {}};
    HtmlTable table{
        {"alone, per tensor", "crest factor", "SNR, dB", "squared error", "KL, bits", "perplexity"},
        {},
        1,
        {}};
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Sensitivity& m = order[i];
        series.points.emplace_back(m.crest, m.score.kl_bits);
        series.labels.push_back(i < 3 ? m.name : "");
        table.rows.push_back({m.name, cell(m.crest, "{:.3f}"), cell(m.error.snr_db(), "{:.2f}"),
                              cell(m.error.noise, "{:.4g}"), cell(m.score.kl_bits, "{:.6f}"),
                              cell(m.score.perplexity, "{:.4f}")});
    }
    chart.series.push_back(std::move(series));
    const auto word = [](double r) {
        if (!std::isfinite(r)) return std::string("cannot be compared with it");
        const char* said = r >= 0.7   ? "agrees well"
                           : r >= 0.3 ? "agrees loosely"
                                      : "does not agree";
        return fmt::format("{} with it (rank correlation {:.2f})", said, r);
    };
    return section(
        "sensitivity", "Sensitivity",
        paragraph(fmt::format(
            "KL when one matrix alone is quantised to {} bits with one scale. The order by crest "
            "factor {}, the order by squared error of the weights {}.",
            s.main_bits, word(s.crest_correlation), word(s.noise_correlation))) +
            chart_svg(chart) + table.html() + foldings_part(s));
}

} // namespace mnm::cli
