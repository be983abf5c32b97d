// SPDX-License-Identifier: MIT
// The study: its parts in turn.
#include "engine/analysis/study.h"

#include "engine/analysis/src/workbench.h"

#include <fmt/format.h>

#include <cstdlib>

namespace mnm {
namespace {

/// 4, or the nearest there is; the smaller of two.
int main_bits(const std::vector<int>& bits) {
    int best = bits.front();
    for (const int b : bits)
        if (std::abs(b - 4) < std::abs(best - 4)) best = b;
    return best;
}

} // namespace

std::vector<Granularity> studied_granularities() {
    return {Granularity::tensor(), Granularity::row(), Granularity::column(),
            Granularity::groups_of(32), Granularity::groups_of(16)};
}

Result<Score> Workbench::score(Observer* observer) {
    MNM_TRY(const Score got, trials.score(weights.model(), observer));
    advance();
    return got;
}

void Workbench::advance() {
    ++done;
    if (options.progress) options.progress(done, total);
}

void Workbench::quantize(const UniformQuantizer& quantizer, std::vector<SignalAndNoise>* errors,
                         PooledErrors* pooled) {
    const std::vector<MatrixSlice>& matrices = weights.matrices();
    std::vector<PooledErrors> each(pooled != nullptr ? matrices.size() : 0);
    if (errors != nullptr) errors->assign(matrices.size(), {});
    parallel.for_ranges(matrices.size(), 1, [&](std::size_t begin, std::size_t end, unsigned) {
        for (std::size_t i = begin; i < end; ++i) {
            const MatrixSlice& m = matrices[i];
            const std::span<float> w = weights.weights(m);
            const std::vector<float> scales = uniform_scales<float>(w, m.rows, m.cols, quantizer);
            std::vector<float> before;
            if (errors != nullptr || pooled != nullptr) before.assign(w.begin(), w.end());
            fake_quantize<float>(w, m.rows, m.cols, quantizer, scales, w);
            if (errors != nullptr)
                (*errors)[i].add(std::span<const float>(before), std::span<const float>(w));
            if (pooled == nullptr) continue;
            for (std::size_t k = 0; k < w.size(); ++k) {
                const double scale =
                    scales[quantizer.granularity.index(k / m.cols, k % m.cols, m.cols)];
                if (scale > 0) each[i].add((static_cast<double>(before[k]) - w[k]) / scale);
            }
        }
    });
    for (const PooledErrors& one : each)
        pooled->add(one);
}

RatePoint Workbench::rate_point(std::string name, int bits, double stored, const Score& s) const {
    const auto targets = static_cast<double>(study.targets);
    return {std::move(name),
            bits,
            stored / static_cast<double>(study.parameters),
            s.loss_nats,
            s.perplexity,
            s.kl_bits,
            s.top1_agreement,
            description_length(stored, targets, s.loss_nats)};
}

Result<Study> run_study(const Model& model, const std::vector<EvaluationRow>& rows,
                        const StudyOptions& options, const kernels::Kernels& kernels,
                        Parallel& parallel) {
    MNM_TRY(WeightSet weights, WeightSet::copy(model, parallel));
    Study study;
    study.stale_matrix = options.stale_matrix;
    if (study.stale_matrix.empty()) {
        study.stale_matrix = model.config().tied_head ? "token_embd.weight" : "output.weight";
    }
    std::string known;
    bool found = false;
    for (const MatrixSlice& matrix : weights.matrices()) {
        found = found || matrix.name == study.stale_matrix;
        known += (known.empty() ? "" : ", ") + matrix.name;
    }
    if (!found) {
        return Error{fmt::format("{}: has no matrix '{}'; it has {}", model.file().path(),
                                 study.stale_matrix, known)};
    }
    MNM_TRY(Trials trials, Trials::create(model, rows, kernels, parallel));

    study.bits = options.bits;
    study.main_bits = main_bits(options.bits);
    study.parameters = model.config().parameters();
    study.reference = trials.reference();
    study.targets = study.reference.targets;
    study.rows = rows.size();
    for (const EvaluationRow& row : rows)
        study.tokens += row.inputs.size();
    study.knee_rule = options.knee;
    study.raw_corpus_bits =
        raw_bits(static_cast<double>(study.targets), static_cast<double>(model.config().vocab));
    if (const Codec* stored = model.file().uniform_codec();
        stored == nullptr || stored->type != WeightType::f32) {
        study.notes.push_back("The model is quantised already: KL is measured against the model as "
                              "it is run, everything else starts from its decoded weights.");
    }

    Workbench bench{model, options, parallel, trials, weights, study, {}, 0, 0};
    bench.total = count_rate_trials(options) +
                  count_activation_trials(options.bits, study.main_bits) +
                  count_single_trials(weights.matrices().size());
    MNM_CHECK(study_rates(bench));
    MNM_CHECK(study_activations(bench));
    MNM_CHECK(study_stale_scale(bench));
    MNM_CHECK(study_sensitivity(bench));
    MNM_CHECK(study_foldings(bench));
    return study;
}

} // namespace mnm
