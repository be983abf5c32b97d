// SPDX-License-Identifier: MIT
// Observers of a forward pass.
#include "engine/analysis/activation_observers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace mnm {
namespace {

/// One token's vector quantised; a scale per tensor comes from `ranges`, which may be null for the
/// other granularities.
void quantize_row(std::span<const float> x, const UniformQuantizer& quantizer,
                  const SiteRanges* ranges, std::span<float> out) {
    if (quantizer.granularity.kind == Granularity::Kind::tensor) {
        const float scale = ranges->max / static_cast<float>(quantizer.q_max());
        fake_quantize(x, 1, x.size(), quantizer, std::span<const float>(&scale, 1), out);
    } else {
        fake_quantize(x, 1, x.size(), quantizer, out);
    }
}

const SiteRanges* find(const std::map<Site, SiteRanges>& ranges, const Site& site) {
    const auto found = ranges.find(site);
    return found == ranges.end() ? nullptr : &found->second;
}

} // namespace

std::string site_name(const Site& site, std::size_t layers) {
    static constexpr const char* names[Observer::places] = {"residual stream",
                                                            "attention input",
                                                            "attention output input",
                                                            "ffn input",
                                                            "down input",
                                                            "head input",
                                                            "keys",
                                                            "values",
                                                            "logits"};
    const char* name = names[static_cast<std::size_t>(site.second)];
    if (site.first < layers) return fmt::format("blk.{} {}", site.first, name);
    return site.second == Observer::Place::residual ? "residual stream, last" : name;
}

bool is_product_input(Observer::Place place) {
    using Place = Observer::Place;
    return place == Place::attention_input || place == Place::output_input ||
           place == Place::ffn_input || place == Place::down_input || place == Place::head_input;
}

double SiteRanges::median_channel() const {
    std::vector<float> sorted = channel_max;
    const std::size_t middle = sorted.size() / 2;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(middle),
                     sorted.end());
    return sorted[middle];
}

std::vector<std::size_t> SiteRanges::outliers(double factor) const {
    const double threshold = factor * median_channel();
    std::vector<std::size_t> channels;
    for (std::size_t i = 0; i < channel_max.size(); ++i)
        if (channel_max[i] > threshold) channels.push_back(i);
    std::stable_sort(channels.begin(), channels.end(),
                     [&](std::size_t a, std::size_t b) { return channel_max[a] > channel_max[b]; });
    return channels;
}

void RangeObserver::see(Place place, std::size_t layer, const ObservedRows& rows) {
    const Site site{layer, place};
    SiteRanges& ranges = sites_[site];
    double& sum = token_sums_[site];
    const bool channels = place != Place::logits;
    if (ranges.tokens == 0) {
        ranges.channel_max.resize(channels ? rows.width : 0);
        ranges.token_max_low = std::numeric_limits<float>::max();
    }
    for (std::size_t t = 0; t < rows.count; ++t) {
        const std::span<const float> x = rows.row(t);
        float largest = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float magnitude = std::fabs(x[i]);
            largest = std::max(largest, magnitude);
            if (channels) ranges.channel_max[i] = std::max(ranges.channel_max[i], magnitude);
        }
        ranges.max = std::max(ranges.max, largest);
        ranges.token_max_low = std::min(ranges.token_max_low, largest);
        sum += largest;
    }
    ranges.tokens += rows.count;
    ranges.token_max_mean = static_cast<float>(sum / static_cast<double>(ranges.tokens));
}

void SnrObserver::see(Place place, std::size_t layer, const ObservedRows& rows) {
    if (!is_product_input(place) && place != Place::residual) return;
    const Site site{layer, place};
    std::vector<SignalAndNoise>& sums = sums_[site];
    sums.resize(quantizers_.size());
    const SiteRanges* ranges = find(ranges_, site);
    std::vector<float> changed(rows.width);
    for (std::size_t k = 0; k < quantizers_.size(); ++k) {
        for (std::size_t t = 0; t < rows.count; ++t) {
            const std::span<const float> x = rows.row(t);
            quantize_row(x, quantizers_[k], ranges, changed);
            sums[k].add(x, std::span<const float>(changed));
        }
    }
}

void QuantizingObserver::see(Place place, std::size_t layer, const ObservedRows& rows) {
    const std::optional<UniformQuantizer>* quantizer = nullptr;
    if (is_product_input(place)) quantizer = &plan_.products;
    if (place == Place::key || place == Place::value) quantizer = &plan_.cache;
    if (place == Place::logits) quantizer = &plan_.logits;
    if (quantizer == nullptr || !*quantizer) return;
    const SiteRanges* ranges = find(ranges_, {layer, place});
    for (std::size_t t = 0; t < rows.count; ++t)
        quantize_row(rows.row(t), **quantizer, ranges, rows.row(t));
}

} // namespace mnm
