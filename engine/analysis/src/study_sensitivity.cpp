// SPDX-License-Identifier: MIT
// Single matrices: a stale scale on one, each quantised alone, scales moved between neighbours.
#include "engine/analysis/folding.h"
#include "engine/analysis/src/workbench.h"

#include <algorithm>
#include <cmath>

namespace mnm {
namespace {

constexpr double stale_shares[] = {0.75, 0.5, 0.25};
constexpr int stale_bits = 8;

std::vector<LayerInputs> layer_inputs(const Workbench& bench) {
    std::vector<LayerInputs> inputs;
    using Place = Observer::Place;
    for (std::size_t i = 0; i < bench.source.config().layers; ++i) {
        const auto at = [&](Place place) { return bench.ranges.at({i, place}).channel_max; };
        inputs.push_back({at(Place::attention_input), at(Place::output_input), at(Place::ffn_input),
                          at(Place::down_input)});
    }
    return inputs;
}

struct Folding {
    const char* name;
    void (*fold)(WeightSet&, std::span<const LayerInputs>);
};
constexpr Folding foldings[] = {
    {"as it is", [](WeightSet&, std::span<const LayerInputs>) {}},
    {"norms folded in", [](WeightSet& w, std::span<const LayerInputs>) { fold_norms(w); }},
    {"norms smoothed", smooth_norms},
    {"up and down smoothed", smooth_ffn},
    {"v and o smoothed", smooth_values},
    {"all three smoothed",
     [](WeightSet& w, std::span<const LayerInputs> inputs) {
         smooth_norms(w, inputs);
         smooth_ffn(w, inputs);
         smooth_values(w, inputs);
     }},
};

} // namespace

std::size_t count_single_trials(std::size_t matrices) {
    return matrices + 2 * std::size(stale_shares) + 4 * std::size(foldings);
}

Result<void> study_stale_scale(Workbench& bench) {
    const auto& matrices = bench.weights.matrices();
    const MatrixSlice& matrix =
        *std::find_if(matrices.begin(), matrices.end(),
                      [&](const MatrixSlice& m) { return m.name == bench.study.stale_matrix; });
    const std::span<float> w = bench.weights.weights(matrix);
    const std::vector<float> original(w.begin(), w.end());
    const UniformQuantizer eight{stale_bits, Granularity::tensor()};
    const double fitting = uniform_scales<float>(w, matrix.rows, matrix.cols, eight)[0];
    for (const double share : stale_shares) {
        for (const Overflow overflow : {Overflow::saturate, Overflow::wrap}) {
            StaleStudy study;
            study.scale_share = share;
            study.overflow = overflow;
            const double scale = share * fitting;
            for (std::size_t i = 0; i < w.size(); ++i) {
                const double q = scale > 0 ? std::round(original[i] / scale) : 0;
                const double held = into_word(q, stale_bits, overflow);
                study.overflows += held != q ? 1 : 0;
                w[i] = static_cast<float>(scale * held);
            }
            study.snr_db = snr_db(std::span<const float>(original), std::span<const float>(w));
            if (overflow == Overflow::wrap) study.overflows = bench.study.stale.back().overflows;
            MNM_TRY(study.score, bench.score());
            bench.study.stale.push_back(study);
        }
    }
    bench.weights.restore(matrix);
    return {};
}

Result<void> study_sensitivity(Workbench& bench) {
    std::vector<double> crest, noise, kl;
    for (std::size_t i = 0; i < bench.weights.matrices().size(); ++i) {
        const MatrixSlice& matrix = bench.weights.matrices()[i];
        const std::span<float> w = bench.weights.weights(matrix);
        const std::vector<float> original(w.begin(), w.end());
        fake_quantize<float>(w, matrix.rows, matrix.cols,
                             {bench.study.main_bits, Granularity::tensor()}, w);
        Sensitivity one{matrix.name, bench.study.matrices[i].magnitudes.crest(), {}, {}};
        one.error.add(std::span<const float>(original), std::span<const float>(w));
        MNM_TRY(one.score, bench.score());
        bench.weights.restore(matrix);
        crest.push_back(one.crest);
        noise.push_back(one.error.noise);
        kl.push_back(one.score.kl_bits);
        bench.study.sensitivity.push_back(std::move(one));
    }
    bench.study.crest_correlation = rank_correlation(crest, kl);
    bench.study.noise_correlation = rank_correlation(noise, kl);
    return {};
}

Result<void> study_foldings(Workbench& bench) {
    const std::vector<LayerInputs> inputs = layer_inputs(bench);
    const int bits = bench.study.main_bits;
    const auto inputs_at = [&](int b) {
        return QuantizingObserver(bench.ranges, {UniformQuantizer{b, Granularity::row()}, {}, {}});
    };
    for (const Folding& folding : foldings) {
        FoldingStudy study;
        study.name = folding.name;
        folding.fold(bench.weights, inputs);
        MNM_TRY(study.exact, bench.score());
        QuantizingObserver low = inputs_at(bits), eight = inputs_at(8);
        MNM_TRY(study.activations, bench.score(&low));
        bench.quantize({bits, Granularity::row()});
        MNM_TRY(study.weights, bench.score());
        MNM_TRY(study.both, bench.score(&eight));
        bench.weights.restore(bench.parallel);
        bench.study.foldings.push_back(std::move(study));
    }
    return {};
}

} // namespace mnm
