// SPDX-License-Identifier: MIT
// Tests of the random numbers and of drawing tokens.
#include "engine/sampler.h"

#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

using namespace mnm;

BOOST_AUTO_TEST_SUITE(sampler_test)

namespace {

const kernels::Kernels& reference_kernels() {
    const kernels::Kernels* found = kernels::find("ref");
    BOOST_REQUIRE(found != nullptr);
    return *found;
}

/// What may be drawn and how likely, from the definition, by sorting everything.
std::map<TokenId, double> distribution(const std::vector<float>& logits, const SamplerOptions& o) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    std::vector<std::pair<double, TokenId>> all;
    double total = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const double p = std::exp((logits[i] - largest) / o.temperature);
        all.emplace_back(-p, static_cast<TokenId>(i));
        total += p;
    }
    std::sort(all.begin(), all.end());
    std::map<TokenId, double> kept;
    double mass = 0;
    for (const auto& [minus_p, id] : all) {
        if (o.top_k > 0 && kept.size() >= o.top_k) break;
        if (!kept.empty() && o.top_p < 1 && mass >= o.top_p * total) break;
        kept[id] = -minus_p;
        mass -= minus_p;
    }
    for (auto& [id, p] : kept)
        p /= mass;
    return kept;
}

void check_draws(const std::vector<float>& logits, SamplerOptions options, int draws) {
    const std::map<TokenId, double> expected = distribution(logits, options);
    options.seed = 99;
    Sampler sampler(options, reference_kernels());
    std::map<TokenId, int> counts;
    for (int i = 0; i < draws; ++i)
        ++counts[sampler.sample(logits)];
    double chi_square = 0;
    double cells = 0;
    double share = 0;
    int count = 0;
    for (const auto& [id, p] : expected) { // neighbours share a cell until five draws are due to it
        share += p;
        count += counts[id];
        if (share * draws < 5) continue;
        const double difference = count - share * draws;
        chi_square += difference * difference / (share * draws);
        ++cells;
        share = 0;
        count = 0;
    }
    BOOST_TEST(cells >= 1);
    // Five standard deviations above the mean of the chi-square distribution.
    BOOST_TEST(chi_square < cells + 5 * std::sqrt(2 * cells));
    for (const auto& [id, times] : counts) {
        if (times > 0) BOOST_TEST(expected.contains(id), "token " << id << " must not be drawn");
    }
}

} // namespace

// Published values of xoshiro256** seeded by splitmix64 from 0.
BOOST_AUTO_TEST_CASE(random_numbers_are_the_published_ones) {
    mnm::Random random(0);
    for (const std::uint64_t expected : {11091344671253066420U, 13793997310169335082U,
                                         1900383378846508768U, 7684712102626143532U}) {
        BOOST_TEST(random.next() == expected);
    }
    mnm::Random again(0);
    BOOST_TEST(again.uniform() == static_cast<double>(11091344671253066420U >> 11) / 0x1p53);
    for (int i = 0; i < 10000; ++i) {
        const double u = again.uniform();
        BOOST_REQUIRE((u >= 0 && u < 1));
    }
}

BOOST_AUTO_TEST_CASE(temperature_0_is_the_first_maximum) {
    SamplerOptions options;
    options.temperature = 0;
    Sampler sampler(options, reference_kernels());
    BOOST_TEST(sampler.sample(std::vector<float>{1, 5, 2, 5}) == 1U);
    for (const double odd : {-1.0, std::nan(""), 1e-300}) {
        sampler.options().temperature = odd;
        BOOST_TEST(sampler.sample(std::vector<float>{1, 5, 2, 5}) == 1U);
    }
}

// Eight alike: the draw is the first three bits of the random numbers 0.601, 0.748, 0.103, 0.417.
BOOST_AUTO_TEST_CASE(a_seed_gives_the_same_draws_everywhere) {
    const std::vector<float> logits(8, 1.5F);
    for (const std::uint32_t top_k : {0U, 8U, 64U}) {
        SamplerOptions options;
        options.top_p = 1;
        options.top_k = top_k;
        Sampler sampler(options, reference_kernels());
        for (const TokenId expected : {4U, 5U, 0U, 3U}) {
            BOOST_TEST(sampler.sample(logits) == expected);
        }
    }
}

BOOST_AUTO_TEST_CASE(draws_follow_the_definition) {
    std::mt19937_64 random(1);
    for (const std::size_t vocab : {1U, 7U, 100U, 2048U, 5000U}) {
        if (tests::thin() && vocab > 100) continue;
        for (const double temperature : {0.3, 1.0, 3.0}) {
            std::vector<float> logits(vocab);
            for (float& x : logits)
                x = static_cast<float>(random() % 1000) / 100.0F;
            for (const std::uint32_t top_k : {0U, 1U, 5U, 64U}) {
                for (const double top_p : {0.05, 0.9, 1.0}) {
                    BOOST_TEST_CONTEXT("vocab " << vocab << " temperature " << temperature
                                                << " top_k " << top_k << " top_p " << top_p) {
                        SamplerOptions options;
                        options.temperature = temperature;
                        options.top_k = top_k;
                        options.top_p = top_p;
                        check_draws(logits, options, vocab > 100 ? 200 : 4000);
                    }
                }
            }
        }
    }
}

// Few levels, so that the cut falls among equals: the lower ids stay.
BOOST_AUTO_TEST_CASE(ties_go_to_the_lower_id) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 20; ++round) {
        std::vector<float> logits(200 + random() % 2000);
        for (float& x : logits)
            x = static_cast<float>(random() % 4) / 8.0F;
        SamplerOptions options;
        options.temperature = 1;
        options.top_p = 1;
        options.top_k = 1 + static_cast<std::uint32_t>(random() % 30);
        check_draws(logits, options, 400);
        std::fill(logits.begin(), logits.end(), 2.0F);
        check_draws(logits, options, 400);
    }
}

BOOST_AUTO_TEST_CASE(logits_that_are_no_numbers_are_never_drawn) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const double temperature : {0.0, 0.7}) {
        for (const std::uint32_t top_k : {0U, 2U}) {
            for (const double top_p : {0.9, 1.0}) {
                SamplerOptions options;
                options.temperature = temperature;
                options.top_k = top_k;
                options.top_p = top_p;
                Sampler sampler(options, reference_kernels());
                for (int i = 0; i < 50; ++i) {
                    const TokenId id =
                        sampler.sample(std::vector<float>{nan, 1, nan, 1.5F, -infinity});
                    BOOST_TEST((id == 1 || id == 3));
                    BOOST_TEST(sampler.sample(std::vector<float>{nan, 0, infinity}) == 2U);
                    BOOST_TEST(sampler.sample(std::vector<float>(5, nan)) < 5U);
                    BOOST_TEST(sampler.sample(std::vector<float>(5, -infinity)) < 5U);
                    BOOST_TEST(sampler.sample(std::vector<float>{3e38F, -3e38F, 0}) == 0U);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(options_out_of_range_have_a_meaning) {
    SamplerOptions options;
    options.top_p = 0; // the most likely alone
    Sampler sampler(options, reference_kernels());
    for (int i = 0; i < 50; ++i)
        BOOST_TEST(sampler.sample(std::vector<float>{1, 1.01F, 1}) == 1U);
    sampler.options().top_p = std::nan(""); // off
    sampler.options().top_k = 4'000'000'000U;
    sampler.options().temperature = std::numeric_limits<double>::infinity(); // all alike
    bool seen[3] = {};
    for (int i = 0; i < 200; ++i)
        seen[sampler.sample(std::vector<float>{1, 50, 9})] = true;
    BOOST_TEST((seen[0] && seen[1] && seen[2]));
}

BOOST_AUTO_TEST_SUITE_END()
