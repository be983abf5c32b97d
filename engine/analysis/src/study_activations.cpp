// SPDX-License-Identifier: MIT
// Activations: their ranges, what quantising them would leave, and what it costs in KL.
#include "engine/analysis/src/workbench.h"

#include <fmt/format.h>

namespace mnm {
namespace {

constexpr int site_bits[] = {4, 5, 6, 7, 8};

/// A scale per tensor, per token and per group of 32, in the order of SiteStudy::snr_db.
std::vector<Granularity> site_granularities() {
    return {Granularity::tensor(), Granularity::row(), Granularity::groups_of(32)};
}

Result<void> study_sites(Workbench& bench) {
    RangeObserver ranges;
    MNM_CHECK(bench.trials.watch(bench.weights.model(), ranges));
    bench.ranges = ranges.sites();
    bench.advance();
    std::vector<UniformQuantizer> quantizers;
    for (const Granularity by : site_granularities())
        for (const int bits : site_bits)
            quantizers.push_back({bits, by});
    SnrObserver snr(bench.ranges, quantizers);
    MNM_CHECK(bench.trials.watch(bench.weights.model(), snr));
    bench.advance();
    for (const auto& [site, sums] : snr.sites()) {
        SiteStudy study;
        study.name = site_name(site, bench.source.config().layers);
        study.ranges = bench.ranges.at(site);
        study.outliers = study.ranges.outliers(bench.options.outlier_factor);
        for (std::size_t k = 0; k < sums.size(); ++k) {
            if (k % std::size(site_bits) == 0) study.snr_db.emplace_back();
            study.snr_db.back().push_back(sums[k].snr_db());
        }
        bench.study.sites.push_back(std::move(study));
    }
    return {};
}

/// `weight_bits` in groups of 32 (0: as they are), inputs of every product at `input_bits`.
struct Pair {
    int weight_bits;
    std::vector<int> input_bits; ///< 16: as they are
};

std::vector<Pair> pairs(const std::vector<int>& bits, int main_bits) {
    std::vector<Pair> out = {{0, {8, 4}}};
    if (bits.back() >= 8 && main_bits != 8) out.push_back({8, {8}});
    out.push_back({main_bits, {16, 8, 4}});
    return out;
}

Result<void> study_pairs(Workbench& bench) {
    const auto add = [&](const std::string& name, const ActivationPlan& plan) -> Result<void> {
        QuantizingObserver observer(bench.ranges, plan);
        MNM_TRY(const Score score, bench.score(&observer));
        bench.study.activations.push_back({name, score});
        return {};
    };
    for (const Pair& pair : pairs(bench.options.bits, bench.study.main_bits)) {
        if (pair.weight_bits != 0) bench.quantize({pair.weight_bits, Granularity::groups_of(32)});
        const int shown = pair.weight_bits == 0 ? 16 : pair.weight_bits;
        for (const int inputs : pair.input_bits) {
            if (inputs == 16) {
                MNM_CHECK(add(fmt::format("W{}A16", shown), {}));
                continue;
            }
            for (const Granularity by : {Granularity::row(), Granularity::groups_of(32)}) {
                const bool token = by.kind == Granularity::Kind::row;
                MNM_CHECK(add(fmt::format("W{}A{}, inputs {}", shown, inputs,
                                          token ? "per token" : "in groups of 32"),
                              {UniformQuantizer{inputs, by}, {}, {}}));
            }
        }
        bench.weights.restore(bench.parallel);
    }
    MNM_CHECK(
        add("logits at 4 bits, per tensor", {{}, {}, UniformQuantizer{4, Granularity::tensor()}}));
    return add("logits at 4 bits, per token", {{}, {}, UniformQuantizer{4, Granularity::row()}});
}

Result<void> study_caches(Workbench& bench) {
    for (const int bits : {8, 4}) {
        QuantizingObserver observer(bench.ranges,
                                    {{}, UniformQuantizer{bits, Granularity::groups_of(32)}, {}});
        MNM_TRY(const Score score, bench.score(&observer));
        bench.study.caches.push_back({fmt::format("q{} cache", bits), score});
    }
    return {};
}

} // namespace

std::size_t count_activation_trials(const std::vector<int>& bits, int main_bits) {
    std::size_t count = 2 + 2 + 2; // ranges and SNR, logits, caches
    for (const Pair& pair : pairs(bits, main_bits))
        for (const int inputs : pair.input_bits)
            count += inputs == 16 ? 1 : 2;
    return count;
}

Result<void> study_activations(Workbench& bench) {
    MNM_CHECK(study_sites(bench));
    MNM_CHECK(study_pairs(bench));
    return study_caches(bench);
}

} // namespace mnm
