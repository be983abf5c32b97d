// SPDX-License-Identifier: MIT
// Products of every level against the reference, bit for bit, and the reference against plain sums.
#include "tests/kernels/level_under_test.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <string>

using namespace mnm::tests;
using mnm::kernels::group;
using mnm::kernels::QuantizedRows;
using mnm::kernels::Target;

namespace {

/// Integer fills: every byte the same, alternating extremes, one outlier, or random.
enum class Bytes { random, low, high, alternating, outlier, zero };
constexpr Bytes all_bytes[] = {Bytes::random,      Bytes::low,     Bytes::high,
                               Bytes::alternating, Bytes::outlier, Bytes::zero};

std::vector<std::int8_t> bytes(std::size_t n, Bytes fill, int low, std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::vector<std::int8_t> q(n);
    for (std::size_t i = 0; i < n; ++i) {
        int v = low + static_cast<int>(engine() % static_cast<unsigned>(127 - low + 1));
        if (fill == Bytes::low) v = low;
        if (fill == Bytes::high) v = 127;
        if (fill == Bytes::alternating) v = i % 2 == 0 ? low : 127;
        if (fill == Bytes::outlier) v = i == n / 2 ? 127 : 1;
        if (fill == Bytes::zero) v = 0;
        q[i] = static_cast<std::int8_t>(v);
    }
    return q;
}

struct Problem {
    std::size_t rows, cols, tokens, begin;
    bool add;
};

std::string name(const Problem& p) {
    return "rows " + std::to_string(p.rows) + " cols " + std::to_string(p.cols) + " tokens " +
           std::to_string(p.tokens) + " begin " + std::to_string(p.begin);
}

struct Inputs {
    Inputs(const Problem& p, Bytes fill, std::uint32_t seed)
        : q(bytes(p.tokens * p.cols, fill, -127, seed)),
          scale(floats(p.tokens * p.cols / group, Fill::random, seed + 1)),
          sum(p.tokens * p.cols / group), rows{q.data(), scale.data(), sum.data(), p.tokens,
                                               p.cols} {
        for (std::size_t i = 0; i < q.size(); ++i)
            sum[i / group] += q[i];
    }
    std::vector<std::int8_t> q;
    std::vector<float> scale;
    std::vector<std::int32_t> sum;
    QuantizedRows rows;
};

/// Room enough for any level: see matmul_scratch, which the emulated level does not link.
std::size_t scratch_floats(std::size_t cols) {
    return 32 * cols + 4096;
}

/// Runs both levels into targets with a gap after each token's rows, and compares all of it.
template <class Run>
void same_bits(const Problem& p, const Run& run) {
    const std::size_t stride = p.rows + 5, size = stride * p.tokens;
    const std::vector<float> before = floats(size, Fill::random, 99);
    std::vector<float> want = before;
    Guarded<float> got(size), scratch(scratch_floats(p.cols));
    std::memcpy(got.data(), before.data(), size * sizeof(float));
    run(reference(), Target{want.data(), stride, p.add}, scratch.data());
    run(level_under_test(), Target{got.data(), stride, p.add}, scratch.data());
    BOOST_TEST(got.intact());
    BOOST_TEST(scratch.intact());
    BOOST_TEST(std::memcmp(want.data(), got.data(), size * sizeof(float)) == 0, name(p));
}

std::vector<Problem> problems() {
    std::vector<Problem> list;
    for (std::size_t tokens = 1; tokens <= 14; ++tokens) {
        for (std::size_t rows = 1; rows <= 35; ++rows) {
            list.push_back({rows, 32 * (1 + (rows + tokens) % 7), tokens, 0, rows % 2 == 0});
        }
    }
    for (std::size_t tokens = 15; tokens <= 34; ++tokens) { // one tile of tokens, two, and some
        for (const std::size_t rows : {1U, 15U, 16U, 17U, 35U})
            list.push_back({rows, 32 * (1 + (rows + tokens) % 7), tokens, 0, tokens % 2 == 0});
    }
    for (std::size_t groups = 1; groups <= 9; ++groups)
        list.push_back({48, 32 * groups, 1, 16, false});
    for (std::size_t groups = 1; groups <= 9; ++groups)
        list.push_back({64, 32 * groups, 65, 32, true});
    list.push_back({40, 2048, 3, 16, false});
    return list;
}

void check_q8(const Problem& p, Bytes weights, Bytes inputs, std::uint32_t seed) {
    const auto w = bytes(p.rows * p.cols, weights, -128, seed);
    const auto scale = floats(p.rows, Fill::random, seed + 2);
    const Inputs x(p, inputs, seed + 3);
    same_bits(p, [&](const mnm::kernels::Kernels& k, const Target& target, void* scratch) {
        k.matmul_q8(w.data(), scale.data(), p.begin, p.rows, x.rows, target, scratch);
    });
}

void check_q4(const Problem& p, Bytes weights, Bytes inputs, std::uint32_t seed) {
    auto nibbles = bytes(p.rows * p.cols / 2, weights, -128, seed);
    if (weights == Bytes::low) std::memset(nibbles.data(), 0, nibbles.size());     // all -8
    if (weights == Bytes::high) std::memset(nibbles.data(), 0xFF, nibbles.size()); // all 7
    if (weights == Bytes::zero) std::memset(nibbles.data(), 0x88, nibbles.size()); // all 0
    const auto scale = floats(p.rows * p.cols / group, Fill::random, seed + 2);
    const Inputs x(p, inputs, seed + 3);
    same_bits(p, [&](const mnm::kernels::Kernels& k, const Target& target, void* scratch) {
        k.matmul_q4(reinterpret_cast<const std::uint8_t*>(nibbles.data()), scale.data(), p.begin,
                    p.rows, x.rows, target, scratch);
    });
}

} // namespace

BOOST_AUTO_TEST_SUITE(products)

BOOST_AUTO_TEST_CASE(q8_in_every_remainder) {
    std::uint32_t seed = 1;
    for (const Problem& p : problems())
        check_q8(p, Bytes::random, Bytes::random, seed++);
}

BOOST_AUTO_TEST_CASE(q4_in_every_remainder) {
    std::uint32_t seed = 1001;
    for (const Problem& p : problems())
        check_q4(p, Bytes::random, Bytes::random, seed++);
}

BOOST_AUTO_TEST_CASE(integer_extremes) {
    for (const std::size_t tokens : {1U, 3U, 8U, 17U}) {
        const Problem p{21, 192, tokens, 0, false};
        for (const Bytes weights : all_bytes) {
            for (const Bytes inputs : all_bytes) {
                check_q8(p, weights, inputs, 5);
                check_q4(p, weights, inputs, 6);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(f32_in_every_remainder_and_fill) {
    for (const Problem& p : problems()) {
        if (p.rows % 3 != 0 && p.tokens > 3) continue;
        for (const Fill fill : all_fills) {
            const auto w = floats(p.rows * p.cols, fill, 7);
            const auto x = floats(p.tokens * p.cols, Fill::random, 8);
            same_bits(p, [&](const mnm::kernels::Kernels& k, const Target& target, void* scratch) {
                k.matmul_f32(w.data(), p.begin, p.rows, {x.data(), p.tokens, p.cols}, target,
                             scratch);
            });
        }
    }
}

/// Against double: the integer part is exact, each group adds one rounding.
BOOST_AUTO_TEST_CASE(q8_is_the_product_it_claims_to_be) {
    const Problem p{33, 256, 5, 0, false};
    const auto w = bytes(p.rows * p.cols, Bytes::random, -127, 11);
    const auto scale = floats(p.rows, Fill::random, 12);
    const Inputs x(p, Bytes::random, 13);
    std::vector<float> y(p.rows * p.tokens);
    Guarded<float> scratch(scratch_floats(p.cols));
    level_under_test().matmul_q8(w.data(), scale.data(), 0, p.rows, x.rows,
                                 {y.data(), p.rows, false}, scratch.data());
    for (std::size_t t = 0; t < p.tokens; ++t) {
        for (std::size_t r = 0; r < p.rows; ++r) {
            double want = 0, magnitude = 0;
            for (std::size_t i = 0; i < p.cols; ++i) {
                const double term = double{scale[r]} * w[r * p.cols + i] * x.q[t * p.cols + i] *
                                    x.scale[(t * p.cols + i) / group];
                want += term;
                magnitude += std::fabs(term);
            }
            BOOST_TEST(std::fabs(y[t * p.rows + r] - want) <= 1e-6 * magnitude);
        }
    }
}

BOOST_AUTO_TEST_CASE(q4_is_the_product_it_claims_to_be) {
    const Problem p{19, 160, 4, 0, false};
    const auto w = bytes(p.rows * p.cols / 2, Bytes::random, -128, 21);
    const auto scale = floats(p.rows * p.cols / group, Fill::random, 22);
    const Inputs x(p, Bytes::random, 23);
    std::vector<float> y(p.rows * p.tokens);
    Guarded<float> scratch(scratch_floats(p.cols));
    level_under_test().matmul_q4(reinterpret_cast<const std::uint8_t*>(w.data()), scale.data(), 0,
                                 p.rows, x.rows, {y.data(), p.rows, false}, scratch.data());
    for (std::size_t t = 0; t < p.tokens; ++t) {
        for (std::size_t r = 0; r < p.rows; ++r) {
            double want = 0, magnitude = 0;
            for (std::size_t i = 0; i < p.cols; ++i) {
                const std::size_t in_group = i % group;
                const auto pair =
                    static_cast<std::uint8_t>(w[r * p.cols / 2 + i / group * 16 + in_group % 16]);
                const int q = (in_group < 16 ? pair % 16 : pair / 16) - 8;
                const double term = double{scale[r * p.cols / group + i / group]} * q *
                                    x.q[t * p.cols + i] * x.scale[(t * p.cols + i) / group];
                want += term;
                magnitude += std::fabs(term);
            }
            BOOST_TEST(std::fabs(y[t * p.rows + r] - want) <= 1e-6 * magnitude);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
