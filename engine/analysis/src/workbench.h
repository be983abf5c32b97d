// SPDX-License-Identifier: MIT
// What the parts of a study share: weights to change, trials to run, results to fill in.
#pragma once

#include "engine/analysis/study.h"
#include "engine/analysis/trials.h"
#include "engine/analysis/weight_set.h"

namespace mnm {

struct Workbench {
    const Model& source;
    const StudyOptions& options;
    Parallel& parallel;
    Trials& trials;
    WeightSet& weights; ///< each part leaves it restored
    Study& study;
    std::map<Site, SiteRanges> ranges; ///< of the unquantised model
    std::size_t done = 0;
    std::size_t total = 0;

    /// Runs the weights as they are.
    Result<Score> score(Observer* observer = nullptr);
    /// Quantises every matrix, each from the weights that it has. `errors` (one per matrix) and
    /// `pooled` may be null.
    void quantize(const UniformQuantizer& quantizer, std::vector<SignalAndNoise>* errors = nullptr,
                  PooledErrors* pooled = nullptr);
    void advance();
    RatePoint rate_point(std::string name, int bits, double stored_bits, const Score& score) const;
};

/// How often each part calls advance().
std::size_t count_rate_trials(const StudyOptions& options);
std::size_t count_activation_trials(const std::vector<int>& bits, int main_bits);
std::size_t count_single_trials(std::size_t matrices);

/// Points 1 and 2: SNR of every matrix, and the rate-distortion curves.
Result<void> study_rates(Workbench& bench);
/// Points 3 and 5: ranges, SNR and KL of quantised activations and caches.
Result<void> study_activations(Workbench& bench);
/// Point 4.
Result<void> study_stale_scale(Workbench& bench);
/// Point 6.
Result<void> study_sensitivity(Workbench& bench);
Result<void> study_foldings(Workbench& bench);

} // namespace mnm
