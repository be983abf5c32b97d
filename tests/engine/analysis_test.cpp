// SPDX-License-Identifier: MIT
// Quantisers, distortions, knees and memory against values computed by hand or by brute force.
#include "engine/analysis/distortion.h"
#include "engine/analysis/divergence.h"
#include "engine/analysis/memory_bound.h"
#include "engine/analysis/quantizer.h"
#include "engine/analysis/rate_distortion.h"
#include "tests/engine/models.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(analysis_test)

namespace {

template <class T>
std::vector<T> quantized(const std::vector<T>& w, std::size_t rows, std::size_t cols,
                         const UniformQuantizer& quantizer) {
    std::vector<T> out(w.size());
    fake_quantize(std::span<const T>(w), rows, cols, quantizer, std::span<T>(out));
    return out;
}

RatePoint point(double rate, double kl) {
    RatePoint p;
    p.bits_per_weight = rate;
    p.kl_bits = kl;
    return p;
}

} // namespace

BOOST_AUTO_TEST_CASE(halves_go_away_from_zero_and_scales_follow_the_granularity) {
    BOOST_TEST(quantize_value(2.5, 1.0, 7) == 3);
    BOOST_TEST(quantize_value(-2.5, 1.0, 7) == -3);
    BOOST_TEST(quantize_value(-0.49999999999999994, 1.0, 7) == 0);
    BOOST_TEST(quantize_value(1e30, 1.0, 7) == 7);
    BOOST_TEST(quantize_value(-1e30f, 1e-30f, 127) == -127);
    BOOST_TEST(quantize_value(3.0, 0.0, 7) == 0);
    // 3 bits: q_max 3.
    const std::vector<double> w = {3, -1.4, 0.5, 6, 12, 0};
    const std::vector<double> tensor = {4, 0, 0, 8, 12, 0};
    const std::vector<double> row = {3, -1, 1, 8, 12, 0};
    const std::vector<double> column = {4, 0, 0.5, 6, 12, 0};
    const std::vector<double> pairs = {3, -1, 0.5, 8, 12, 0};
    BOOST_TEST(quantized(w, 2, 3, {3, Granularity::tensor()}) == tensor,
               boost::test_tools::per_element());
    BOOST_TEST(quantized(w, 2, 3, {3, Granularity::row()}) == row,
               boost::test_tools::per_element());
    BOOST_TEST(quantized(w, 2, 3, {3, Granularity::column()}) == column,
               boost::test_tools::per_element());
    // The last group of each row is shorter.
    BOOST_TEST(quantized(w, 2, 3, {3, Granularity::groups_of(2)}) == pairs,
               boost::test_tools::per_element());
}

/// Every granularity against a search over the grid of the weight's own block.
BOOST_AUTO_TEST_CASE(each_weight_becomes_the_nearest_point_of_its_grid) {
    const std::size_t rows = 5, cols = 50;
    const std::vector<float> w = random_floats(rows * cols, 7);
    for (const Granularity by : {Granularity::tensor(), Granularity::row(), Granularity::column(),
                                 Granularity::groups_of(16), Granularity::groups_of(32)}) {
        for (int bits = 2; bits <= 8; ++bits) {
            const auto got = quantized(w, rows, cols, {bits, by});
            for (std::size_t i = 0; i < w.size(); ++i) {
                const auto block = [&](std::size_t k) {
                    const std::size_t r = k / cols, c = k % cols;
                    switch (by.kind) {
                    case Granularity::Kind::tensor:
                        return std::size_t{0};
                    case Granularity::Kind::row:
                        return r;
                    case Granularity::Kind::column:
                        return c;
                    default:
                        return r * 100 + c / by.group;
                    }
                };
                double largest = 0;
                for (std::size_t k = 0; k < w.size(); ++k)
                    if (block(k) == block(i)) largest = std::max<double>(largest, std::fabs(w[k]));
                const int q_max = (1 << (bits - 1)) - 1;
                double best = std::numeric_limits<double>::max();
                for (int q = -q_max; q <= q_max; ++q)
                    best = std::min(best, std::fabs(largest / q_max * q - w[i]));
                BOOST_TEST(std::fabs(std::fabs(static_cast<double>(got[i]) - w[i]) - best) < 1e-6);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(stored_bits_count_the_scales) {
    BOOST_TEST((UniformQuantizer{4, Granularity::tensor()}.stored_bits(8, 64)) == 2048 + 32);
    BOOST_TEST((UniformQuantizer{4, Granularity::row()}.stored_bits(8, 64)) == 2048 + 8 * 32);
    BOOST_TEST((UniformQuantizer{4, Granularity::column()}.stored_bits(8, 64)) == 2048 + 64 * 32);
    BOOST_TEST((UniformQuantizer{4, Granularity::groups_of(32)}.stored_bits(8, 64)) ==
               2048 + 16 * 32);
    BOOST_TEST(Granularity::groups_of(32).scales(2, 33) == 4U);
}

BOOST_AUTO_TEST_CASE(fixed_point_rounds_saturates_and_wraps) {
    const FixedPoint nearest{1, 2}; // step 1/4, range -2 to 1.75
    const FixedPoint floor{1, 2, Rounding::floor};
    const FixedPoint wrap{1, 2, Rounding::nearest, Overflow::wrap};
    BOOST_TEST(nearest.name() == "Q1.2");
    BOOST_TEST(nearest.word() == 4);
    BOOST_TEST(fixed_point(0.375, nearest) == 0.5);
    BOOST_TEST(fixed_point(-0.375, nearest) == -0.5);
    BOOST_TEST(fixed_point(0.49, floor) == 0.25);
    BOOST_TEST(fixed_point(-0.01, floor) == -0.25);
    bool over = true;
    BOOST_TEST(fixed_point(1.75, nearest, &over) == 1.75);
    BOOST_TEST(!over);
    BOOST_TEST(fixed_point(2.0, nearest, &over) == 1.75);
    BOOST_TEST(over);
    BOOST_TEST(fixed_point(-9.0, nearest) == -2.0);
    BOOST_TEST(fixed_point(2.0, wrap) == -2.0);
    BOOST_TEST(fixed_point(2.25, wrap) == -1.75);
    BOOST_TEST(fixed_point(-2.25, wrap) == 1.75);
    BOOST_TEST(fixed_point(5.0, wrap) == 1.0);
}

BOOST_AUTO_TEST_CASE(distortions_by_hand) {
    const std::vector<double> w = {3, 4}, v = {3, 4.5};
    BOOST_TEST(std::fabs(snr_db(std::span(w), std::span(v)) - 20) < 1e-12); // 25 / 0.25
    BOOST_TEST(std::isinf(snr_db(std::span(w), std::span(w))));
    const Magnitudes m = magnitudes(std::span(w));
    BOOST_TEST(m.max == 4);
    BOOST_TEST(std::fabs(m.rms - std::sqrt(12.5)) < 1e-15);
    BOOST_TEST(std::fabs(model_line_db(4, 10) - (24.08 + 4.77 - 20)) < 1e-12);
    PooledErrors errors, more;
    for (const double e : {-0.5, 0.25, 0.5})
        errors.add(e);
    more.add(0.75);
    errors.add(more);
    BOOST_TEST(errors.count() == 4U);
    BOOST_TEST(errors.mean() == 0.25);
    BOOST_TEST(std::fabs(errors.twelve_mean_square() - 12 * 1.125 / 4) < 1e-15);
    BOOST_TEST(std::fabs(errors.twelve_variance() - 12 * (1.125 / 4 - 0.0625)) < 1e-15);
    BOOST_TEST(errors.max() == 0.75);
    BOOST_TEST(errors.histogram().front() == 1U);
    BOOST_TEST(errors.histogram()[15] == 1U);
    BOOST_TEST(errors.histogram().back() == 2U);
}

BOOST_AUTO_TEST_CASE(rank_correlations_by_hand) {
    const std::vector<double> x = {1, 2, 3, 4, 5}, up = {10, 11, 30, 31, 99};
    const std::vector<double> down = {5, 4, 3, 2, 1}, mixed = {2, 1, 4, 3, 5};
    BOOST_TEST(std::fabs(rank_correlation(x, up) - 1) < 1e-15);
    BOOST_TEST(std::fabs(rank_correlation(x, down) + 1) < 1e-15);
    BOOST_TEST(std::fabs(rank_correlation(x, mixed) - 0.8) < 1e-15); // 1 - 6 * 4 / 120
    const std::vector<double> a = {1, 1, 2}, b = {3, 4, 5};          // ranks 1.5, 1.5, 3
    BOOST_TEST(std::fabs(rank_correlation(a, b) - 1.5 / std::sqrt(1.5 * 2)) < 1e-15);
    BOOST_TEST(std::isnan(rank_correlation(a, std::vector<double>{7, 7, 7})));
}

BOOST_AUTO_TEST_CASE(divergence_of_two_coins) {
    // p = (1/2, 1/2), q = (1/4, 3/4): KL = 1/2 log2 2 + 1/2 log2(2/3).
    const std::vector<double> p = {5, 5}, q = {1, 1 + std::log(3.0)};
    const double expected = 0.5 + 0.5 * std::log2(2.0 / 3);
    BOOST_TEST(std::fabs(divergence_bits<double>(p, q) - expected) < 1e-15);
    BOOST_TEST(divergence_bits<double>(p, p) == 0);
    BOOST_TEST(std::fabs(loss_nats<double>(q, 0) - std::log(4.0)) < 1e-15);
}

BOOST_AUTO_TEST_CASE(the_knee_follows_its_rule) {
    // Unsorted; the floor is 0.002 here, the threshold 0.02.
    const std::vector<RatePoint> curve = {point(8, 0.002), point(3, 0.5), point(5, 0.019),
                                          point(4, 0.021), point(6, 0.004)};
    const Knee knee = find_knee(curve, {}).value();
    BOOST_TEST(knee.index == 2U);
    BOOST_TEST(knee.before.value() == 3U);
    BOOST_TEST(knee.floor == 0.002);
    // Below 0.001 bits the stated least floor counts, whatever the curve still gains.
    const std::vector<RatePoint> deep = {point(4, 0.02), point(5, 0.0099), point(16, 1e-9)};
    BOOST_TEST(find_knee(deep, {}).value().index == 1U);
    BOOST_TEST(find_knee(deep, {10, 1e-12}).value().index == 2U);
    // At one rate the better point counts, on both sides of the knee.
    const std::vector<RatePoint> twins = {point(4, 0.9), point(4, 0.5), point(8, 0.009),
                                          point(8, 0.001), point(16, 0.0009)};
    BOOST_TEST(find_knee(twins, {}).value().index == 3U);
    BOOST_TEST(find_knee(twins, {}).value().before.value() == 1U);
    BOOST_TEST(!find_knee(std::vector<RatePoint>{}, {}));
    BOOST_TEST(!find_knee(std::vector<RatePoint>{point(4, NAN)}, {}));
    BOOST_TEST(!find_knee(std::vector<RatePoint>{point(4, 1), point(5, 0.1)}, {}));
}

BOOST_AUTO_TEST_CASE(memory_of_a_small_model) {
    const TempFolder folder;
    const Model model = random_model(folder, small_config(), WeightType::f32);
    const MemoryStudy study = study_memory(model.file(), 1e9, 2e9);
    BOOST_REQUIRE(study.cases.size() == 9U);
    // 2 layers, 2 key/value heads of 16, keys and values.
    BOOST_TEST(study.cases[0].cache_bytes_per_token == 2 * 2 * 2 * 16 * 4);
    BOOST_TEST(study.cases[1].cache_bytes_per_token == 2 * 2 * 2 * (16 + 4));
    BOOST_TEST(study.cases[2].cache_bytes_per_token == 2 * 2 * 2 * (8 + 4));
    BOOST_TEST(study.cases[0].weight_bytes ==
               4.0 * static_cast<double>(small_config().parameters()));
    for (const MemoryCase& one : study.cases) {
        const double tokens = one.overtaking_context;
        BOOST_TEST(std::fabs(tokens * one.cache_bytes_per_token / one.weight_bytes - 1) < 1e-12);
        const double bytes = one.weight_bytes + 64 * one.cache_bytes_per_token;
        BOOST_TEST(std::fabs(one.bounds[2] * bytes / 1e9 - 1) < 1e-12); // at the context, 64
        BOOST_TEST(one.other_bounds[2] == 2 * one.bounds[2]);
    }
}

BOOST_AUTO_TEST_SUITE_END()
