// SPDX-License-Identifier: MIT
// Observers of a forward pass: the ranges of activations, what quantising them would lose, and
// quantising them.
#pragma once

#include "engine/analysis/distortion.h"
#include "engine/analysis/quantizer.h"
#include "engine/observer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mnm {

/// One place of one layer.
using Site = std::pair<std::size_t, Observer::Place>;
/// "blk.3 down input", "residual after the last layer".
std::string site_name(const Site& site, std::size_t layers);
/// The inputs of the matrices.
bool is_product_input(Observer::Place place);

/// Ranges at one site over all tokens seen.
struct SiteRanges {
    std::vector<float> channel_max; ///< [width] of |x|
    float max = 0;
    float token_max_low = 0;  ///< the least of the tokens' maxima
    float token_max_mean = 0; ///< their mean
    std::uint64_t tokens = 0;

    double median_channel() const;
    /// Channels whose maximum exceeds `factor` times the median one, the largest first.
    std::vector<std::size_t> outliers(double factor) const;
};

/// Records the ranges at every site but the logits' channels (their maximum is recorded).
class RangeObserver : public Observer {
  public:
    void see(Place place, std::size_t layer, const ObservedRows& rows) override;
    const std::map<Site, SiteRanges>& sites() const { return sites_; }

  private:
    std::map<Site, SiteRanges> sites_;
    std::map<Site, double> token_sums_;
};

/// The SNR that quantising would leave at product inputs and in the residual stream; a scale per
/// tensor is the one of the ranges given.
class SnrObserver : public Observer {
  public:
    SnrObserver(const std::map<Site, SiteRanges>& ranges, std::vector<UniformQuantizer> quantizers)
        : ranges_(ranges), quantizers_(std::move(quantizers)) {}
    void see(Place place, std::size_t layer, const ObservedRows& rows) override;
    /// One for each quantiser, in their order.
    const std::map<Site, std::vector<SignalAndNoise>>& sites() const { return sums_; }

  private:
    const std::map<Site, SiteRanges>& ranges_;
    std::vector<UniformQuantizer> quantizers_;
    std::map<Site, std::vector<SignalAndNoise>> sums_;
};

/// What to quantise as it flows by; rows are tokens, so a scale per row is one per token. A scale
/// per tensor needs the ranges of a pass before.
struct ActivationPlan {
    std::optional<UniformQuantizer> products; ///< inputs of every matrix
    std::optional<UniformQuantizer> cache;    ///< keys and values as they are written
    std::optional<UniformQuantizer> logits;
};

class QuantizingObserver : public Observer {
  public:
    QuantizingObserver(const std::map<Site, SiteRanges>& ranges, ActivationPlan plan)
        : ranges_(ranges), plan_(std::move(plan)) {}
    void see(Place place, std::size_t layer, const ObservedRows& rows) override;

  private:
    const std::map<Site, SiteRanges>& ranges_;
    ActivationPlan plan_;
};

} // namespace mnm
