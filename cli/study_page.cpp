// SPDX-License-Identifier: MIT
// A study as one page of HTML: nothing beside it is needed, nothing in it runs.
#include "cli/study_page.h"

#include "cli/html_table.h"
#include "cli/report.h"
#include "cli/svg_chart.h"
#include "cli/version.h"

#include <fmt/format.h>

namespace mnm::cli {
namespace {

/// Colours are those of Okabe and Ito, which the colour-blind tell apart; lighter ones in the dark.
constexpr const char* style = R"(
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #57606a; --rule: #d5dae0;
  --mark: #fff3c4; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b0508a; --c4: #7a6a00;
  --c5: #1b1f24; --c6: #56767f; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e4e7eb; --soft: #a0a8b2;
  --rule: #363c44; --mark: #4a3f12; --c0: #56b4e9; --c1: #ff9248; --c2: #2fd0a0; --c3: #e59bc8;
  --c4: #e5d34a; --c5: #e4e7eb; --c6: #9fc0c9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
p { max-width: 46rem; margin: .5rem 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--rule);
  border-radius: .4rem; padding: .6rem .8rem; font-size: .9rem; }
.scroll, .chart { overflow-x: auto; margin: .6rem 0; }
.chart > svg { display: block; width: 100%; min-width: 30rem; max-width: 46rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; border-bottom: 1px solid var(--rule);
  vertical-align: top; white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; white-space: normal; min-width: 3.4rem; }
.n { text-align: right; }
.marked { background: var(--mark); font-weight: 600; }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
nav ul, .legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: 0;
  margin: .3rem 0; }
.legend li { display: flex; align-items: center; gap: .4rem; font-size: .9rem; }
.legend svg { width: 28px; flex: none; }
a { color: var(--c0); }
svg text { fill: var(--ink); font-size: 14px; }
svg .axis { fill: var(--soft); }
svg .mid { text-anchor: middle; } svg .end { text-anchor: end; }
svg .grid { stroke: var(--rule); } svg .line { fill: none; stroke-width: 2; }
svg .open { fill: none; stroke-width: 2.2; } svg .point { font-size: 12.5px; }
svg .knee { fill: none; stroke: var(--ink); stroke-width: 2; }
.s0 { fill: var(--c0); stroke: var(--c0); } .s1 { fill: var(--c1); stroke: var(--c1); }
.s2 { fill: var(--c2); stroke: var(--c2); } .s3 { fill: var(--c3); stroke: var(--c3); }
.s4 { fill: var(--c4); stroke: var(--c4); } .s5 { fill: var(--c5); stroke: var(--c5); }
.s6 { fill: var(--c6); stroke: var(--c6); }
svg g text { stroke: none; }
.s1 .line { stroke-dasharray: 9 4; } .s2 .line { stroke-dasharray: 3 3; }
.s3 .line { stroke-dasharray: 12 4 3 4; } .s4 .line { stroke-dasharray: 6 2; }
.s5 .line { stroke-dasharray: 2 5; }
@media print { :root { color-scheme: light; --page: #fff; --ink: #000; --soft: #444; --rule: #bbb;
  --mark: #eee; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b0508a; --c4: #7a6a00;
  --c5: #000; --c6: #56767f; }
  @page { margin: 14mm; } body { max-width: none; padding: 0; font-size: 9.5pt; }
  nav { display: none; } .scroll, .chart { overflow: visible; } table { font-size: 7.5pt; }
  th, td { padding-right: .45rem; } th { min-width: 0; } .wide { font-size: 6pt; }
  .wide th, .wide td { padding-right: .3rem; } .chart > svg { min-width: 0; max-width: 14cm; }
  h2, h3 { break-after: avoid; } .chart, tr { break-inside: avoid; } thead { display:
  table-header-group; } }
)";

std::string summary(const StudyResult& result) {
    const Study& s = result.study;
    std::string text = paragraph(fmt::format(
        "{} parameters; loss {:.6f} nats, perplexity {:.5f} on {} targets "
        "({} tokens in {}) of {}. Computed in {:.1f} s by mnm {}.",
        grouped(s.parameters), s.reference.loss_nats, s.reference.perplexity, grouped(s.targets),
        grouped(s.tokens), counted(s.rows, "row"), result.data, result.seconds, version));
    text += "<p>Made by:</p><pre><code>" + html_text(result.command) + "</code></pre>\n";
    for (const std::string& note : s.notes)
        text += paragraph("Note: " + note);
    return text;
}

} // namespace

std::string section(const std::string& id, const std::string& title, const std::string& body) {
    return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, html_text(title),
                       body);
}

std::string paragraph(const std::string& text) {
    return "<p>" + html_text(text) + "</p>\n";
}

std::string study_page(const StudyResult& result) {
    const std::string title = "Rate and distortion of " + html_text(result.model);
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
           title + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n<h1>" + title +
           "</h1>\n" + summary(result) +
           "<nav aria-label=\"Sections\"><ul><li><a href=\"#rate\">Rate and distortion</a></li>"
           "<li><a href=\"#quantizers\">Quantisers</a></li>"
           "<li><a href=\"#activations\">Activations</a></li>"
           "<li><a href=\"#stale\">Saturate or wrap</a></li>"
           "<li><a href=\"#memory\">Memory</a></li>"
           "<li><a href=\"#sensitivity\">Sensitivity</a></li></ul></nav>\n<main>\n" +
           rate_section(result) + quantizer_section(result) + activation_section(result) +
           stale_section(result) + memory_section(result) + sensitivity_section(result) +
           "</main>\n</body>\n</html>\n";
}

} // namespace mnm::cli
