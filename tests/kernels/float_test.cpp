// SPDX-License-Identifier: MIT
// Float kernels of every level against the reference, bit for bit, and the reference against
// double.
#include "tests/kernels/level_under_test.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

using namespace mnm::tests;
using namespace mnm::kernels;

namespace {

struct Quantized {
    explicit Quantized(std::size_t n) : q(n), scale(n / group), sum(n / group) {}
    std::vector<std::int8_t> q;
    std::vector<float> scale;
    std::vector<std::int32_t> sum;
    friend bool operator==(const Quantized&, const Quantized&) = default;
};

Quantized quantized(const Kernels& k, const std::vector<float>& x) {
    Quantized out(x.size());
    k.quantize(x.data(), x.size(), out.q.data(), out.scale.data(), out.sum.data());
    return out;
}

/// a * b + c with one rounding, by way of double rounded to odd; not every C library's fmaf can.
float rounded_once(float a, float b, float c) {
    const double product = double{a} * b, sum = product + c, part = sum - product;
    const double error = (product - (sum - part)) + (c - part);
    if (error == 0 || std::bit_cast<std::uint64_t>(sum) % 2 == 1) return static_cast<float>(sum);
    const double side = error > 0 ? HUGE_VAL : -HUGE_VAL;
    return static_cast<float>(std::nextafter(sum, side));
}

} // namespace

BOOST_AUTO_TEST_SUITE(float_kernels)

BOOST_AUTO_TEST_CASE(quantize_has_the_reference_bits) {
    for (const Fill fill : all_fills) {
        for (const std::size_t n : {32U, 64U, 96U, 768U}) {
            const auto x = floats(n, fill, 31);
            BOOST_TEST((quantized(reference(), x) == quantized(level_under_test(), x)));
        }
    }
}

BOOST_AUTO_TEST_CASE(quantize_is_within_half_a_step) {
    const auto x = floats(960, Fill::random, 32);
    const Quantized out = quantized(level_under_test(), x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double scale = out.scale[i / group];
        BOOST_TEST(std::fabs(x[i] - scale * out.q[i]) <= 0.5001 * scale);
    }
    for (std::size_t g = 0; g < out.sum.size(); ++g) {
        int sum = 0, largest = 0;
        for (std::size_t i = 0; i < group; ++i) {
            sum += out.q[g * group + i];
            largest = std::max(largest, std::abs(int{out.q[g * group + i]}));
        }
        BOOST_TEST(out.sum[g] == sum);
        BOOST_TEST(largest == 127);
    }
}

BOOST_AUTO_TEST_CASE(a_group_too_small_to_scale_becomes_zeros) {
    for (const float tiny : {0.0f, 1e-45f, 1e-38f}) {
        const Quantized out = quantized(level_under_test(), std::vector<float>(group, tiny));
        BOOST_TEST(out.scale[0] == 0.0f);
        for (const std::int8_t q : out.q)
            BOOST_TEST(q == 0);
    }
    const Quantized small = quantized(level_under_test(), std::vector<float>(group, 1e-30f));
    BOOST_TEST(small.scale[0] > 0.0f);
    BOOST_TEST(small.q[0] == 127);
}

/// Sums that a fused multiply-add made of two roundings gets wrong: double's rounding ends between
/// two floats, or the result is smaller than a normal float.
BOOST_AUTO_TEST_CASE(a_multiply_add_rounds_once) {
    const float above = 1 + 0x1p-23f, below = 1 - 0x1p-23f;
    for (const float unit : {1.0f, 0x1p40f, 0x1p-60f, 0x1p-100f, 0x1p-125f, 0x1p-126f, 0x1p-140f}) {
        for (const float a : {above, 1.0f, below, -below}) {
            for (const float b : {above, below, 0x1p-22f, 3.0f}) {
                for (const float c : {above, below, 2.0f, -above, 0.0f}) {
                    // Lane 0 is c, then a 2^-24 b more.
                    float w[2 * lanes] = {c * unit}, x[2 * lanes] = {1};
                    w[lanes] = a * 0x1p-24f;
                    x[lanes] = b * unit;
                    float y = 0;
                    level_under_test().matmul_f32(w, 0, 1, {x, 1, 2 * lanes}, {&y, 1, false},
                                                  nullptr);
                    const float want = rounded_once(w[lanes], x[lanes], c * unit);
                    BOOST_TEST(y == want, a << " " << b << " " << c << " " << unit);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_q4_scale_has_the_reference_bits_and_a_small_error) {
    for (const Fill fill : {Fill::random, Fill::outlier, Fill::negative}) {
        const auto x = floats(group * 200, fill, 34);
        for (const float* w = x.data(); w != x.data() + x.size(); w += group) {
            const auto less = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
            const float first = *std::max_element(w, w + group, less), max = std::fabs(first);
            float want[2], got[2];
            reference().fit_q4(w, first, max, &want[0], &want[1]);
            level_under_test().fit_q4(w, first, max, &got[0], &got[1]);
            BOOST_TEST(same(want, got, 2));
            const auto error = [&](float inverse, double scale) {
                double sum = 0;
                for (std::size_t i = 0; i < group; ++i) {
                    // In float, for 7.5 times the largest weight's inverse lies between two.
                    const double q = std::clamp(std::nearbyint(w[i] * inverse), -8.0f, 7.0f);
                    sum += (w[i] - q * scale) * (w[i] - q * scale);
                }
                return sum;
            };
            // Sums in float: what they stand for, sum w^2 - error, is known to 1e-6 of itself.
            const double found = error(got[0], got[1]) - 1e-6 * error(0, 0);
            for (int tenths = 71; tenths < 90; ++tenths) {
                const float by = static_cast<float>(-tenths) / 10.0f;
                BOOST_TEST(found <= 1.0001 * error(by / first, first / by));
            }
            BOOST_TEST(found <= 1.0001 * error(7 / max, max / 7));
        }
    }
}

/// The bound of the specification: 3e-7 relative to libm over [-87, 88].
BOOST_AUTO_TEST_CASE(exp_is_accurate_and_has_the_reference_bits) {
    std::vector<float> x;
    for (double v = -87; v <= 88; v += 0.000371)
        x.push_back(static_cast<float>(v));
    for (const float v :
         {-1e30f, -100.0f, -87.34f, -87.33f, -0.0f, 0.0f, 1e-40f, 88.0f, 88.5f, 1e30f}) {
        x.push_back(v);
    }
    while (x.size() % lanes != 0)
        x.push_back(1.0f);
    std::vector<float> want(x.size()), got(x.size());
    reference().exp(x.data(), x.size(), want.data());
    level_under_test().exp(x.data(), x.size(), got.data());
    BOOST_TEST(same(want.data(), got.data(), x.size()));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] < -87 || x[i] > 88) continue;
        const double exact = std::exp(double{x[i]});
        worst = std::max(worst, std::fabs(got[i] / exact - 1));
    }
    BOOST_TEST(worst < 3e-7);
    float ends[lanes] = {-1e30f, 1e30f, 0};
    level_under_test().exp(ends, lanes, ends);
    BOOST_TEST(ends[0] == 0.0f);
    BOOST_TEST(ends[1] > 2e38f);
    BOOST_TEST(std::isfinite(ends[1]));
    BOOST_TEST(ends[2] == 1.0f);
}

BOOST_AUTO_TEST_CASE(rmsnorm_and_swiglu_and_softmax_have_the_reference_bits) {
    for (const Fill fill : all_fills) {
        for (const std::size_t n : {16U, 32U, 80U, 192U, 1024U}) {
            const auto x = floats(n, fill, 41), w = floats(n, Fill::random, 42);
            std::vector<float> want(n), got(n);
            reference().rmsnorm(x.data(), w.data(), n, 1e-5f, want.data());
            level_under_test().rmsnorm(x.data(), w.data(), n, 1e-5f, got.data());
            BOOST_TEST(same(want.data(), got.data(), n));
            reference().swiglu(x.data(), w.data(), n, want.data());
            level_under_test().swiglu(x.data(), w.data(), n, got.data());
            BOOST_TEST(same(want.data(), got.data(), n));
        }
        for (std::size_t n = 1; n < 70; ++n) {
            const auto x = floats(n, fill, 43);
            std::vector<float> want(n), got(n);
            const float a = reference().softmax(x.data(), n, 1.3f, want.data());
            const float b = level_under_test().softmax(x.data(), n, 1.3f, got.data());
            BOOST_TEST(std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b));
            BOOST_TEST(same(want.data(), got.data(), n));
        }
    }
}

BOOST_AUTO_TEST_CASE(rmsnorm_and_swiglu_are_what_they_claim) {
    const std::size_t n = 192;
    const auto x = floats(n, Fill::random, 51), w = floats(n, Fill::random, 52);
    std::vector<float> y(n);
    double squares = 0;
    for (const float v : x)
        squares += double{v} * v;
    level_under_test().rmsnorm(x.data(), w.data(), n, 1e-5f, y.data());
    for (std::size_t i = 0; i < n; ++i) {
        const double want = x[i] / std::sqrt(squares / n + 1e-5) * w[i];
        BOOST_TEST(std::fabs(y[i] - want) <= 1e-6 * std::fabs(want));
    }
    level_under_test().swiglu(x.data(), w.data(), n, y.data());
    for (std::size_t i = 0; i < n; ++i) {
        const double want = x[i] / (1 + std::exp(-double{x[i]})) * w[i];
        BOOST_TEST(std::fabs(y[i] - want) <= 1e-6 * std::fabs(want));
    }
}

BOOST_AUTO_TEST_CASE(rope_has_the_reference_bits_and_keeps_lengths) {
    for (const std::size_t dim : {2U, 6U, 64U, 80U, 128U}) {
        std::vector<float> turn;
        for (std::size_t i = 0; i < dim / 2; ++i) {
            turn.push_back(static_cast<float>(std::cos(0.37 * static_cast<double>(i + 1))));
            turn.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i + 1))));
        }
        const auto head = floats(dim, Fill::random, 61);
        auto want = head, got = head;
        reference().rope(want.data(), dim, turn.data());
        level_under_test().rope(got.data(), dim, turn.data());
        BOOST_TEST(same(want.data(), got.data(), dim));
        for (std::size_t i = 0; i < dim; i += 2) {
            const double before = std::hypot(head[i], head[i + 1]);
            BOOST_TEST(std::fabs(std::hypot(got[i], got[i + 1]) - before) <= 1e-6 * before);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_probes_of_the_machine_do_what_they_count) {
    std::vector<std::uint64_t> words(256);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words.size(); ++i)
        sum += words[i] = i * 0x9E3779B97F4A7C15U;
    BOOST_TEST(level_under_test().sum_words(words.data(), words.size()) == sum);
    BOOST_TEST(level_under_test().dot_loop(100000) >= 100000U);
}

BOOST_AUTO_TEST_CASE(argmax_is_the_first_maximum) {
    const auto found = [](const std::vector<float>& x) {
        return level_under_test().argmax(x.data(), x.size());
    };
    for (const std::size_t n : {1U, 2U, 15U, 255U, 256U, 257U, 1000U, 1024U}) {
        const std::vector<float> random = floats(n, Fill::random, 81);
        for (std::size_t place = 0; place < n; place += 1 + n / 37) {
            std::vector<float> x = random;
            x[place] = x[n - 1] = 1e9f;
            BOOST_TEST(found(x) == place);
            std::fill(x.begin() + static_cast<std::ptrdiff_t>(place), x.end(), -2.0f);
            BOOST_TEST(found(x) == reference().argmax(x.data(), n));
        }
        BOOST_TEST(found(std::vector<float>(n, -HUGE_VALF)) == 0U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
