// SPDX-License-Identifier: MIT
// SNR of every matrix, errors in steps, fixed-point grids, and the rate-distortion curves.
#include "engine/analysis/src/workbench.h"
#include "engine/convert.h"

#include <fmt/format.h>

#include <algorithm>

namespace mnm {
namespace {

/// Bits that every matrix takes through the quantiser, and the norms in f32.
double uniform_bits(const Workbench& bench, const UniformQuantizer& quantizer) {
    double bits = 0, weights = 0;
    for (const MatrixSlice& m : bench.weights.matrices()) {
        bits += quantizer.stored_bits(m.rows, m.cols);
        weights += static_cast<double>(m.weights());
    }
    return bits + 32 * (static_cast<double>(bench.study.parameters) - weights);
}

void measure_matrices(Workbench& bench) {
    const std::vector<MatrixSlice>& matrices = bench.weights.matrices();
    for (const MatrixSlice& m : matrices) {
        MatrixStudy& study = bench.study.matrices.emplace_back();
        study.name = m.name;
        study.rows = m.rows;
        study.cols = m.cols;
        study.magnitudes = magnitudes(std::span<const float>(bench.weights.weights(m)));
        study.snr_db.resize(studied_granularities().size());
    }
}

/// Every weight on each grid, with both roundings and both overflow rules.
void study_grids(Workbench& bench) {
    for (const FixedPoint& asked : bench.options.grids) {
        for (const Rounding rounding : {Rounding::nearest, Rounding::floor}) {
            for (const Overflow overflow : {Overflow::saturate, Overflow::wrap}) {
                FixedPoint grid = asked;
                grid.rounding = rounding;
                grid.overflow = overflow;
                const auto& matrices = bench.weights.matrices();
                std::vector<SignalAndNoise> sums(matrices.size());
                std::vector<std::uint64_t> overflows(matrices.size());
                bench.parallel.for_ranges(
                    matrices.size(), 1, [&](std::size_t begin, std::size_t end, unsigned) {
                        for (std::size_t i = begin; i < end; ++i) {
                            for (const float w : bench.weights.weights(matrices[i])) {
                                bool overflowed = false;
                                const double held = fixed_point(w, grid, &overflowed);
                                sums[i].signal += static_cast<double>(w) * w;
                                sums[i].noise += (w - held) * (w - held);
                                overflows[i] += overflowed ? 1 : 0;
                            }
                        }
                    });
                GridStudy study{grid, 0, 0};
                SignalAndNoise all;
                for (std::size_t i = 0; i < sums.size(); ++i) {
                    all.add(sums[i]);
                    study.overflows += overflows[i];
                }
                study.snr_db = all.snr_db();
                bench.study.grids.push_back(study);
                bench.advance();
            }
        }
    }
}

Result<void> study_granularity(Workbench& bench, std::size_t index) {
    const Granularity by = studied_granularities()[index];
    RateCurve curve{by.name(), {}, {}};
    for (const int bits : bench.options.bits) {
        const UniformQuantizer quantizer{bits, by};
        std::vector<SignalAndNoise> errors;
        PooledErrors pooled;
        const bool pool = bits == bench.study.main_bits;
        bench.quantize(quantizer, &errors, pool ? &pooled : nullptr);
        if (pool) bench.study.errors.push_back({by, pooled});
        for (std::size_t i = 0; i < errors.size(); ++i)
            bench.study.matrices[i].snr_db[index].push_back(errors[i].snr_db());
        MNM_TRY(const Score score, bench.score());
        curve.points.push_back(bench.rate_point(fmt::format("{} bits {}", bits, by.name()), bits,
                                                uniform_bits(bench, quantizer), score));
        bench.weights.restore(bench.parallel);
    }
    curve.knee = find_knee(curve.points, bench.options.knee);
    bench.study.curves.push_back(std::move(curve));
    return {};
}

struct StoredType {
    const char* name;
    WeightType type;
    bool fit;
    bool multiplied; ///< the engine has a product for it, with its own rounding of the inputs
};
constexpr StoredType stored_types[] = {
    {"f32", WeightType::f32, true, true},    {"f16", WeightType::f16, true, false},
    {"q8_0", WeightType::q8_0, true, false}, {"q8", WeightType::q8, true, true},
    {"q4", WeightType::q4, true, true},      {"q4 --no-fit", WeightType::q4, false, true},
    {"q4_0", WeightType::q4_0, true, false}, {"q4_0 --no-fit", WeightType::q4_0, false, false},
};

/// Weight types as files hold them. Those that the engine multiplies with run through their own
/// products, as `mnm eval` on the written file does; the others are decoded to floats.
Result<void> study_stored_types(Workbench& bench) {
    RateCurve curve{"stored types", {}, {}};
    double largest = 0;
    for (const MatrixStudy& matrix : bench.study.matrices)
        largest = std::max(largest, matrix.magnitudes.max);
    for (const StoredType& stored : stored_types) {
        const Codec& type = codec(stored.type);
        if (largest > largest_weight(stored.type)) {
            bench.study.notes.push_back(
                fmt::format("{} is left out: the largest weight, {}, is beyond what it holds.",
                            stored.name, largest));
            bench.advance();
            continue;
        }
        const EncodeOptions encode{stored.fit, kernels::best().fit_q4};
        Score score;
        if (stored.multiplied) {
            MNM_TRY(const EncodedModel encoded,
                    EncodedModel::encode(bench.weights, type, encode, bench.parallel));
            MNM_TRY(score, bench.trials.score(encoded.model()));
            bench.advance();
        } else {
            encode_and_decode(bench.weights, type, encode, bench.parallel);
            MNM_TRY(score, bench.score());
            bench.weights.restore(bench.parallel);
        }
        curve.points.push_back(
            bench.rate_point(stored.name, 0, stored_bits(bench.source.file(), type), score));
    }
    curve.knee = find_knee(curve.points, bench.options.knee);
    bench.study.curves.push_back(std::move(curve));
    return {};
}

} // namespace

std::size_t count_rate_trials(const StudyOptions& options) {
    constexpr std::size_t rules = 2 * 2; // rounding, overflow
    return rules * options.grids.size() + studied_granularities().size() * options.bits.size() +
           std::size(stored_types);
}

Result<void> study_rates(Workbench& bench) {
    measure_matrices(bench);
    study_grids(bench);
    for (std::size_t i = 0; i < studied_granularities().size(); ++i)
        MNM_CHECK(study_granularity(bench, i));
    return study_stored_types(bench);
}

} // namespace mnm
