// SPDX-License-Identifier: MIT
// The rate-distortion study of a model: what each bit costs in SNR, perplexity and KL, where
// activations and single matrices hurt. docs/rate-distortion.md explains every figure.
#pragma once

#include "engine/analysis/activation_observers.h"
#include "engine/analysis/distortion.h"
#include "engine/analysis/quantizer.h"
#include "engine/analysis/rate_distortion.h"
#include "engine/analysis/trials.h"
#include "engine/evaluate.h"
#include "engine/model.h"
#include "engine/parallel.h"
#include "formats/result.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mnm {

struct StudyOptions {
    std::vector<int> bits = {2, 3, 4, 5, 6, 7, 8}; ///< ascending, each 2..16, not empty
    std::vector<FixedPoint> grids = {{0, 7}, {1, 6}, {2, 5}, {0, 3}, {1, 2}};
    std::string stale_matrix; ///< name of a MatrixSlice; empty: the head
    KneeRule knee;
    double outlier_factor = 6;
    std::function<void(std::size_t done, std::size_t total)> progress; ///< may be empty
};

/// The granularities of the quantiser study, in the order of every table.
std::vector<Granularity> studied_granularities();

struct MatrixStudy {
    std::string name;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    Magnitudes magnitudes;
    std::vector<std::vector<double>> snr_db; ///< [granularity][bits]
};

struct ErrorStudy {
    Granularity granularity;
    PooledErrors errors; ///< of all matrices
};

struct GridStudy {
    FixedPoint grid; ///< with rounding and overflow
    double snr_db = 0;
    std::uint64_t overflows = 0; ///< of all weights
};

struct RateCurve {
    std::string name;
    std::vector<RatePoint> points;
    std::optional<Knee> knee;
};

struct SiteStudy {
    std::string name;
    SiteRanges ranges;
    std::vector<std::size_t> outliers;       ///< channels, the largest first
    std::vector<std::vector<double>> snr_db; ///< [per tensor, per token, group of 32][bits 4..8]
};

/// A variant with what it costs.
struct Trial {
    std::string name;
    Score score;
};

struct StaleStudy {
    double scale_share = 0; ///< stale scale / fitting scale
    std::uint64_t overflows = 0;
    Overflow overflow = Overflow::saturate;
    double snr_db = 0;
    Score score;
};

struct Sensitivity {
    std::string name;
    double crest = 0;
    SignalAndNoise error;
    Score score;
};

struct FoldingStudy {
    std::string name;
    Score exact;       ///< nothing quantised: what the fold itself changes
    Score weights;     ///< weights at fold_bits, per row
    Score activations; ///< inputs at fold_bits, per token, weights as they are
    Score both;        ///< weights at fold_bits per row, inputs at 8 bits per token
};

struct Study {
    std::vector<int> bits;
    int main_bits = 4; ///< of everything that is studied at one width: 4, or the nearest of `bits`
    std::uint64_t parameters = 0;
    std::uint64_t targets = 0;
    std::uint64_t tokens = 0; ///< inputs
    std::uint64_t rows = 0;
    Evaluation reference;
    std::vector<MatrixStudy> matrices;
    std::vector<ErrorStudy> errors; ///< at main_bits
    std::vector<GridStudy> grids;
    std::vector<RateCurve> curves; ///< one a granularity, then the stored weight types
    KneeRule knee_rule;
    double raw_corpus_bits = 0; ///< targets at log2 of the vocabulary
    std::vector<SiteStudy> sites;
    std::vector<Trial> activations;
    std::vector<Trial> caches; ///< q8 and q4 key/value cache, in groups of 32
    std::string stale_matrix;
    std::vector<StaleStudy> stale;
    std::vector<Sensitivity> sensitivity; ///< at main_bits, per tensor, in file order
    double crest_correlation = 0;         ///< rank correlation of crest factor and KL
    double noise_correlation = 0;         ///< of the squared error of the weights and KL
    std::vector<FoldingStudy> foldings;
    std::vector<std::string> notes; ///< what was left out, and why
};

/// Studies `model` on `rows`. Needs one float copy of the model, two copies of the largest matrix a
/// thread, and up to 256 MB of logits. Errors: weights or logits that are not finite, an unknown
/// stale matrix (the names are listed), not enough memory.
Result<Study> run_study(const Model& model, const std::vector<EvaluationRow>& rows,
                        const StudyOptions& options, const kernels::Kernels& kernels,
                        Parallel& parallel);

} // namespace mnm
