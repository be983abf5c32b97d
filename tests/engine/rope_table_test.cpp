// SPDX-License-Identifier: MIT
// Our own sine, cosine and power against libm, and the rotary table.
#include "engine/src/rope_table.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

using namespace mnm;

BOOST_AUTO_TEST_SUITE(rope_table_test)

BOOST_AUTO_TEST_CASE(sine_and_cosine_are_those_of_libm) {
    double worst = 0;
    for (double angle = 0; angle < 1e6; angle = angle * 1.0007 + 0.0011) {
        const SinCos got = portable_sincos(angle);
        worst = std::max(
            {worst, std::fabs(got.sin - std::sin(angle)), std::fabs(got.cos - std::cos(angle))});
    }
    BOOST_TEST(worst < 1e-14);
}

BOOST_AUTO_TEST_CASE(powers_are_those_of_libm) {
    for (const double base : {0.1, 1.0, 10.0, 10000.0, 500000.0, 1e6, 3.7e9}) {
        for (double exponent = -1; exponent <= 0; exponent += 1.0 / 64) {
            const double want = std::pow(base, exponent);
            BOOST_TEST(std::fabs(portable_pow(base, exponent) - want) <= 1e-14 * want);
        }
    }
}

BOOST_AUTO_TEST_CASE(rows_grow_and_stay) {
    ModelConfig config;
    config.head_dim = 6;
    RopeTable table(config);
    table.extend(3);
    const float before = table.row(2)[2];
    table.extend(100);
    BOOST_TEST(table.row(2)[2] == before);
    for (std::size_t position = 0; position < 100; ++position) {
        for (std::size_t i = 0; i < 3; ++i) {
            const double angle = static_cast<double>(position) *
                                 std::pow(10000.0, -2.0 * static_cast<double>(i) / 6);
            BOOST_TEST(table.row(position)[2 * i] == static_cast<float>(std::cos(angle)));
            BOOST_TEST(table.row(position)[2 * i + 1] == static_cast<float>(std::sin(angle)));
        }
    }
}

/// The published Llama 3.1 rule at its own settings: factor 8, 1 and 4, 8192.
BOOST_AUTO_TEST_CASE(llama3_scaling_keeps_high_and_divides_low_frequencies) {
    ModelConfig config;
    config.head_dim = 128;
    config.rope_base = 500000;
    config.rope_scaling = {RopeScaling::Type::llama3, 8, 1, 4, 8192};
    RopeTable table(config);
    table.extend(2);
    BOOST_TEST(table.row(1)[0] == static_cast<float>(std::cos(1.0)));
    const double slow = std::pow(500000.0, -126.0 / 128) / 8;
    BOOST_TEST(std::fabs(table.row(1)[127] - std::sin(slow)) < 1e-12);
    config.rope_scaling = {RopeScaling::Type::linear, 4, 1, 4, 0};
    RopeTable linear(config);
    linear.extend(5);
    BOOST_TEST(linear.row(4)[0] == static_cast<float>(std::cos(1.0)));
}

BOOST_AUTO_TEST_SUITE_END()
