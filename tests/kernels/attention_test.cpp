// SPDX-License-Identifier: MIT
// The cache's numbers and attention of every level against the reference, and that against double.
#include "tests/kernels/level_under_test.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mnm::tests;
using namespace mnm::kernels;

namespace {

/// The number that a half float's bits stand for (IEEE 754, no infinities here).
double half_value(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// Keys and values of one head in a cache, by the kernels of `table`.
struct Cached {
    Cached(const Kernels& table, CacheType kind, const std::vector<float>& k,
           const std::vector<float>& v, std::size_t tokens, std::size_t width)
        : type(kind), dim(width), blocks((tokens + key_block - 1) / key_block),
          keys(blocks * key_block * dim * bytes()),
          values(blocks * key_block * padded(dim) * bytes()), k_scale(blocks * key_block),
          v_scale(blocks * key_block) {
        for (std::size_t j = 0; j < tokens; ++j) {
            const std::size_t b = j / key_block * key_block;
            k_scale[j] = table.cache_put(&k[j * dim], dim, type,
                                         &keys[(b * dim + j % key_block) * bytes()], key_block);
            v_scale[j] =
                table.cache_put(&v[j * dim], dim, type, &values[j * padded(dim) * bytes()], 1);
        }
    }
    std::size_t bytes() const {
        return type == CacheType::f32 ? 4 : type == CacheType::f16 ? 2 : 1;
    }
    double at(const std::vector<std::byte>& numbers, std::size_t i, float scale) const {
        const std::byte* p = &numbers[i * bytes()];
        float whole;
        std::uint16_t half;
        switch (type) {
        case CacheType::f32:
            std::memcpy(&whole, p, 4);
            return whole;
        case CacheType::f16:
            std::memcpy(&half, p, 2);
            return half_value(half);
        default:
            return double{scale} * static_cast<std::int8_t>(*p);
        }
    }
    double key(std::size_t j, std::size_t d) const {
        const std::size_t b = j / key_block * key_block;
        return at(keys, b * dim + d * key_block + j % key_block, k_scale[j]);
    }
    double value(std::size_t j, std::size_t d) const {
        return at(values, j * padded(dim) + d, v_scale[j]);
    }

    CacheType type;
    std::size_t dim, blocks;
    std::vector<std::byte> keys, values;
    std::vector<float> k_scale, v_scale;
};

/// Attention of `heads` queries over all blocks, [heads][dim]; each block `alone` and then merged,
/// or joined at once.
std::vector<float> attention(const Kernels& table, const Cached& cache, const std::vector<float>& q,
                             std::size_t heads, std::size_t tokens, bool alone) {
    const std::size_t stride = padded(cache.dim);
    std::vector<float> state(heads * (stride + 2)), part(state.size()), y(heads * cache.dim);
    const auto view = [&](std::vector<float>& floats) {
        return AttentionState{&floats[heads * stride], &floats[heads * (stride + 1)], &floats[0]};
    };
    for (std::size_t b = 0; b < tokens; b += key_block) {
        const AttentionBlock block{q.data(),
                                   cache.type,
                                   &cache.keys[b * cache.dim * cache.bytes()],
                                   &cache.values[b * stride * cache.bytes()],
                                   &cache.k_scale[b],
                                   &cache.v_scale[b],
                                   heads,
                                   std::min(tokens - b, key_block),
                                   cache.dim,
                                   0.125f,
                                   b == 0 || alone,
                                   b == 0 ? nullptr : cache.keys.data(),
                                   b == 0 ? nullptr : cache.values.data()};
        table.attend(block, view(b == 0 || !alone ? state : part));
        if (b != 0 && alone) table.attend_merge(view(state), view(part), heads, cache.dim);
    }
    table.attend_finish(view(state), heads, cache.dim, y.data());
    return y;
}

} // namespace

BOOST_AUTO_TEST_SUITE(attention_kernels)

BOOST_AUTO_TEST_CASE(the_cache_rounds_to_the_nearest_half_and_ties_to_even) {
    auto put = [](double x) {
        const auto value = static_cast<float>(x);
        std::uint16_t half = 0;
        level_under_test().cache_put(&value, 1, CacheType::f16, &half, 1);
        return half;
    };
    for (std::uint16_t bits = 0; bits < 0x7BFF; ++bits) {
        const double here = half_value(bits), next = half_value(bits + 1);
        const double middle = (here + next) / 2; // a float: one bit more than a half
        const auto above = static_cast<double>(std::nextafter(static_cast<float>(middle), 1e9f));
        BOOST_REQUIRE(put(here) == bits);
        BOOST_REQUIRE(put(middle) == (bits % 2 == 0 ? bits : bits + 1));
        BOOST_REQUIRE(put(above) == bits + 1);
        BOOST_REQUIRE(put(-middle) == (put(middle) | 0x8000));
    }
    BOOST_TEST(put(1e9) == 0x7BFF);
    BOOST_TEST(put(-65520.0) == 0xFBFF);
    BOOST_TEST(put(1e-30) == 0);
}

BOOST_AUTO_TEST_CASE(the_cache_keeps_eight_bits_as_the_quantiser_does) {
    for (const Fill fill : all_fills) {
        const auto x = floats(group, fill, 91);
        std::int8_t want[group], got[2 * group] = {};
        float scale = 0;
        std::int32_t sum = 0;
        level_under_test().quantize(x.data(), group, want, &scale, &sum);
        const float kept = level_under_test().cache_put(x.data(), group, CacheType::q8, got, 2);
        BOOST_TEST(same(&kept, &scale, 1));
        for (std::size_t i = 0; i < group; ++i)
            BOOST_TEST(int{got[2 * i]} == int{want[i]});
    }
}

BOOST_AUTO_TEST_CASE(attention_has_the_reference_bits_and_is_a_softmax) {
    for (const std::size_t dim : {6U, 48U, 64U, 80U, 128U})
        for (const std::size_t heads : {1U, 2U, 3U, 4U, 5U, 7U})
            for (const std::size_t tokens : {1U, 3U, 17U, 63U, 64U, 65U, 130U})
                for (const CacheType type : {CacheType::f32, CacheType::f16, CacheType::q8}) {
                    const auto q = floats(heads * dim, Fill::random, 71);
                    const auto k = floats(tokens * dim, Fill::random, 72);
                    const auto v = floats(tokens * dim, Fill::random, 73);
                    const Cached theirs(reference(), type, k, v, tokens, dim);
                    const Cached ours(level_under_test(), type, k, v, tokens, dim);
                    BOOST_TEST((theirs.keys == ours.keys && theirs.values == ours.values));
                    const auto want = attention(reference(), theirs, q, heads, tokens, true);
                    const auto got = attention(level_under_test(), ours, q, heads, tokens, false);
                    const auto merged = attention(level_under_test(), ours, q, heads, tokens, true);
                    BOOST_TEST(same(want.data(), got.data(), want.size()));
                    BOOST_TEST(same(want.data(), merged.data(), want.size()));

                    std::vector<double> p(tokens);
                    double sum = 0;
                    for (std::size_t j = 0; j < tokens; ++j) {
                        double s = 0;
                        for (std::size_t d = 0; d < dim; ++d)
                            s += q[d] * ours.key(j, d);
                        sum += p[j] = std::exp(s * 0.125);
                    }
                    for (std::size_t d = 0; d < dim; ++d) {
                        double value = 0;
                        for (std::size_t j = 0; j < tokens; ++j)
                            value += p[j] / sum * ours.value(j, d);
                        BOOST_TEST(std::fabs(got[d] - value) <= 1e-5);
                    }
                }
}

BOOST_AUTO_TEST_SUITE_END()
