// SPDX-License-Identifier: MIT
// A study for people at a terminal: the main figures; the page has all of them.
#include "cli/report.h"
#include "cli/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mnm::cli {
namespace {

std::string curves_text(const Study& s) {
    std::string text =
        "\nweights                     bits/weight   perplexity       KL, bits   top-1\n";
    for (const RateCurve& curve : s.curves) {
        for (std::size_t i = 0; i < curve.points.size(); ++i) {
            const RatePoint& p = curve.points[i];
            const bool knee = curve.knee && curve.knee->index == i;
            text += fmt::format("  {:<25} {:>11.3f} {:>12.4f} {:>14.6f} {:>6.2f} %{}\n", p.name,
                                p.bits_per_weight, p.perplexity, p.kl_bits, 100 * p.top1_agreement,
                                knee ? "  knee" : "");
        }
    }
    return text + fmt::format(
                      "  knee: the smallest rate whose KL is at most {} times the floor, the least "
                      "KL of the curve\n  but no less than {} bits\n",
                      s.knee_rule.factor, s.knee_rule.least_floor);
}

std::string trials_text(const char* title, const std::vector<Trial>& trials) {
    std::string text = fmt::format("\n{:<40} perplexity       KL, bits\n", title);
    for (const Trial& t : trials)
        text += fmt::format("  {:<36} {:>12.4f} {:>14.6f}\n", t.name, t.score.perplexity,
                            t.score.kl_bits);
    return text;
}

std::string stale_text(const Study& s) {
    std::string text = fmt::format("\nstale scale on {} at 8 bits\n", s.stale_matrix);
    for (const StaleStudy& t : s.stale) {
        text +=
            fmt::format("  {:.2f} of the fitting one, {:<9} {:>12} over, {:>8.3f} dB, KL {:.6f}\n",
                        t.scale_share, t.overflow == Overflow::saturate ? "saturate:" : "wrap:",
                        grouped(t.overflows), t.snr_db, t.score.kl_bits);
    }
    return text;
}

std::string memory_text(const MemoryStudy& m) {
    const std::size_t at = 2; // the model's own context
    std::string text =
        fmt::format("\nmemory at {} tokens, read at {:.1f} GB/s\n", m.context, m.bandwidth / 1e9);
    for (const MemoryCase& c : m.cases) {
        text += fmt::format(
            "  {:<3} weights {:>14} bytes, {:<3} cache {:>12} bytes, at most {:>9.1f} tok/s",
            c.weights, grouped(static_cast<std::uint64_t>(c.weight_bytes)), c.cache,
            grouped(static_cast<std::uint64_t>(c.cache_bytes_per_token * m.contexts[at])),
            c.bounds[at]);
        if (m.other_bandwidth)
            text +=
                fmt::format(" ({:.1f} at {} GB/s)", c.other_bounds[at], *m.other_bandwidth / 1e9);
        text += fmt::format("; even at {:.0f} tokens\n", c.overtaking_context);
    }
    return text;
}

std::string sensitivity_text(const Study& s) {
    std::vector<Sensitivity> order = s.sensitivity;
    std::stable_sort(order.begin(), order.end(), [](const Sensitivity& a, const Sensitivity& b) {
        return a.score.kl_bits > b.score.kl_bits;
    });
    const auto shown = [](double r) {
        return std::isfinite(r) ? fmt::format("{:.2f}", r) : std::string("not defined");
    };
    std::string text = fmt::format(
        "\nalone at {} bits per tensor      crest    SNR, dB       KL, bits\n", s.main_bits);
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 10); ++i) {
        text += fmt::format("  {:<28} {:>7.2f} {:>10.2f} {:>14.6f}\n", order[i].name,
                            order[i].crest, order[i].error.snr_db(), order[i].score.kl_bits);
    }
    if (order.size() > 10) text += fmt::format("  and {} less sensitive ones\n", order.size() - 10);
    return text + fmt::format("  rank correlation with KL: crest factor {}, squared error {}\n",
                              shown(s.crest_correlation), shown(s.noise_correlation));
}

std::string foldings_text(const Study& s) {
    std::string text =
        fmt::format("\nscales moved, KL in bits         unquantised   W{0} per row   "
                    "A{0} per token  W{0}A8\n",
                    s.main_bits);
    for (const FoldingStudy& f : s.foldings) {
        text +=
            fmt::format("  {:<28} {:>13.2e} {:>12.6f} {:>14.6f} {:>9.6f}\n", f.name,
                        f.exact.kl_bits, f.weights.kl_bits, f.activations.kl_bits, f.both.kl_bits);
    }
    return text;
}

std::string outliers_text(const Study& s) {
    std::string text =
        "\noutlier channels (beyond the median channel's maximum by the stated factor)\n";
    std::size_t named = 0;
    for (const SiteStudy& site : s.sites) {
        if (site.outliers.empty()) continue;
        text += fmt::format("  {:<30} {} of {}:", site.name, site.outliers.size(),
                            site.ranges.channel_max.size());
        for (std::size_t i = 0; i < std::min<std::size_t>(site.outliers.size(), 6); ++i) {
            text += fmt::format(" {} ({:.3g})", site.outliers[i],
                                site.ranges.channel_max[site.outliers[i]]);
        }
        text += "\n";
        ++named;
    }
    return named == 0 ? text + "  none\n" : text;
}

} // namespace

std::string study_text(const StudyResult& result) {
    const Study& s = result.study;
    std::string text =
        fmt::format("loss            {:.6f} nats, perplexity {:.5f}\n"
                    "targets         {} in {}, {} tokens; {:.1f} s\n",
                    s.reference.loss_nats, s.reference.perplexity, grouped(s.targets),
                    counted(s.rows, "row"), grouped(s.tokens), result.seconds);
    text += curves_text(s) + outliers_text(s) + trials_text("activations", s.activations) +
            stale_text(s) + memory_text(result.memory) +
            trials_text("key/value cache, groups of 32", s.caches) + sensitivity_text(s) +
            foldings_text(s) + "\n";
    for (const std::string& note : s.notes)
        text += fmt::format("note: {}\n", note);
    return text;
}

} // namespace mnm::cli
