// SPDX-License-Identifier: MIT
// Weight types against independent, plain implementations of what their definitions say.
#include "tests/formats/synthetic.h"

#include "formats/src/half.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <limits>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(codec_test)

namespace {

struct Encoded {
    std::vector<std::byte> data, scales;
};

Encoded encode(WeightType type, const std::vector<float>& x, std::uint64_t rows,
               const EncodeOptions& options = {}) {
    const Codec& c = codec(type);
    const std::uint64_t cols = x.size() / rows;
    Encoded out{std::vector<std::byte>(rows * c.data_row_bytes(cols)),
                std::vector<std::byte>(rows * c.scale_row_bytes(cols))};
    c.encode(x.data(), rows, cols, options, out.data.data(),
             out.scales.empty() ? nullptr : out.scales.data());
    return out;
}

std::vector<float> decode(WeightType type, const Encoded& in, std::uint64_t rows,
                          std::uint64_t cols) {
    std::vector<float> out(rows * cols);
    codec(type).decode(in.data.data(), in.scales.data(), rows, cols, out.data());
    return out;
}

std::vector<float> random_weights(std::size_t n, std::uint64_t seed, float spread = 0.05f) {
    Random random(seed);
    std::vector<float> x(n);
    for (float& w : x)
        w = spread * random.normal();
    return x;
}

template <class T>
T at(const std::vector<std::byte>& bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// The double nearest to what the sixteen bits mean.
double half_value(unsigned bits) {
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                             : exponent == 31 ? std::numeric_limits<double>::infinity()
                                              : std::ldexp(1024 + mantissa, exponent - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The fitted search as docs/format-2.md words it, one number at a time.
float plain_fit(const float* x, int* q) {
    float max = 0, first = 0;
    for (int i = 0; i < 32; ++i)
        if (std::fabs(x[i]) > max) max = std::fabs(x[i]), first = x[i];
    if (max == 0) {
        std::fill_n(q, 32, 0);
        return 0;
    }
    std::vector<float> inverses;
    for (int c = 71; c <= 89; ++c)
        inverses.push_back(-static_cast<float>(c / 10.0) / first);
    inverses.push_back(7.0f / max);
    float best = 0, scale = 0;
    bool any = false;
    for (const float inverse : inverses) {
        int trial[32];
        float wq[4]{}, qq[4]{};
        for (int i = 0; i < 32; ++i) {
            trial[i] = std::clamp(static_cast<int>(std::nearbyintf(x[i] * inverse)), -8, 7);
            wq[i % 4] += x[i] * static_cast<float>(trial[i]);
            qq[i % 4] += static_cast<float>(trial[i] * trial[i]);
        }
        const float a = (wq[0] + wq[1]) + (wq[2] + wq[3]);
        const float b = (qq[0] + qq[1]) + (qq[2] + qq[3]);
        const float merit = (a * a) / b;
        if (any && !(merit > best)) continue;
        any = true;
        best = merit;
        scale = a / b;
        std::copy_n(trial, 32, q);
    }
    return scale;
}

double error(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    return sum;
}

} // namespace

BOOST_AUTO_TEST_CASE(names_and_sizes) {
    BOOST_TEST(codecs().size() == 6u);
    for (const Codec& c : codecs()) {
        BOOST_TEST(find_codec(c.name) == &c);
        BOOST_TEST(&codec(c.type) == &c);
    }
    BOOST_TEST(find_codec("q5") == nullptr);
    BOOST_TEST(codec(WeightType::q8).data_row_bytes(96) == 96u);
    BOOST_TEST(codec(WeightType::q8).scale_row_bytes(96) == 4u);
    BOOST_TEST(codec(WeightType::q4).data_row_bytes(96) == 48u);
    BOOST_TEST(codec(WeightType::q4).scale_row_bytes(96) == 12u);
    BOOST_TEST(codec(WeightType::q8_0).data_row_bytes(96) == 102u);
    BOOST_TEST(codec(WeightType::q4_0).data_row_bytes(96) == 54u);
}

BOOST_AUTO_TEST_CASE(half_precision_is_exact) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const float value = from_half(static_cast<std::uint16_t>(bits));
        if ((bits & 0x7fff) > 0x7c00) {
            BOOST_REQUIRE(std::isnan(value));
            BOOST_REQUIRE(std::isnan(from_half(to_half(value))));
            continue;
        }
        BOOST_REQUIRE_EQUAL(static_cast<double>(value), half_value(bits));
        BOOST_REQUIRE_EQUAL(to_half(value), bits);
        if ((bits & 0x7fff) >= 0x7c00) continue;
        // Half way to the next one, and a float's step to either side of that.
        const double next = (bits & 0x7fff) == 0x7bff ? std::copysign(65536.0, half_value(bits | 1))
                                                      : half_value(bits + 1);
        const float middle = static_cast<float>((half_value(bits) + next) / 2);
        const unsigned even = (bits & 1) == 0 ? bits : bits + 1;
        BOOST_REQUIRE_EQUAL(to_half(middle), even);
        BOOST_REQUIRE_EQUAL(to_half(std::nextafterf(middle, 0.0f)), bits);
        BOOST_REQUIRE_EQUAL(to_half(std::nextafterf(middle, middle * 4)), bits + 1);
    }
    BOOST_TEST(to_half(3e38f) == 0x7c00);
    BOOST_TEST(to_half(-1e-30f) == 0x8000);
}

BOOST_AUTO_TEST_CASE(fitted_q4_is_the_plain_search) {
    for (const float spread : {1.0f, 0.02f, 1e-12f, 1e12f}) {
        const std::vector<float> x = random_weights(32 * 500, 11, spread);
        const Encoded encoded = encode(WeightType::q4, x, 10);
        for (std::size_t g = 0; g < 500; ++g) {
            int q[32];
            const float scale = plain_fit(x.data() + g * 32, q);
            BOOST_REQUIRE_EQUAL(at<float>(encoded.scales, g * 4), scale);
            for (std::size_t j = 0; j < 16; ++j) {
                const int byte = static_cast<int>(encoded.data[g * 16 + j]);
                BOOST_REQUIRE_EQUAL((byte & 15) - 8, q[j]);
                BOOST_REQUIRE_EQUAL((byte >> 4) - 8, q[j + 16]);
            }
        }
        const EncodeOptions plain{.fit = false};
        BOOST_TEST(
            error(x, decode(WeightType::q4, encoded, 10, 1600)) <
            error(x, decode(WeightType::q4, encode(WeightType::q4, x, 10, plain), 10, 1600)));
    }
}

BOOST_AUTO_TEST_CASE(q8_rounds_to_even) {
    std::vector<float> x = random_weights(37 * 50, 3); // a width that no vector divides
    x[5] = x[0] = 0;
    std::fill_n(x.begin() + 37, 37, 0.0f);
    const Encoded encoded = encode(WeightType::q8, x, 50);
    for (std::size_t r = 0; r < 50; ++r) {
        float max = 0;
        for (std::size_t i = 0; i < 37; ++i)
            max = std::max(max, std::fabs(x[r * 37 + i]));
        BOOST_REQUIRE_EQUAL(at<float>(encoded.scales, r * 4), max / 127.0f);
        for (std::size_t i = 0; i < 37; ++i) {
            const float q = max == 0 ? 0 : std::nearbyintf(x[r * 37 + i] * (127.0f / max));
            BOOST_REQUIRE_EQUAL(at<std::int8_t>(encoded.data, r * 37 + i), q);
        }
    }
}

BOOST_AUTO_TEST_CASE(q8_0_is_ggmls) {
    std::vector<float> x = random_weights(32 * 2000, 5);
    for (std::size_t i = 0; i < 32; ++i) // every half, and its neighbours, of a block with d = 1
        x[i] = (i % 2 ? 1.0f : -1.0f) *
               std::nextafterf(3.5f * static_cast<float>(i), i % 3 ? 0.0f : 1e3f);
    x[0] = 127.0f;
    std::fill_n(x.begin() + 32, 32, 0.0f);
    const Encoded encoded = encode(WeightType::q8_0, x, 4);
    for (std::size_t g = 0; g < 2000; ++g) {
        float amax = 0;
        for (std::size_t i = 0; i < 32; ++i)
            amax = std::max(amax, std::fabs(x[g * 32 + i]));
        const float d = amax / 127;
        const float id = d != 0 ? 1 / d : 0;
        BOOST_REQUIRE_EQUAL(at<std::uint16_t>(encoded.data, g * 34), to_half(d));
        for (std::size_t i = 0; i < 32; ++i)
            BOOST_REQUIRE_EQUAL(at<std::int8_t>(encoded.data, g * 34 + 2 + i),
                                std::roundf(x[g * 32 + i] * id));
    }
    const std::vector<float> back = decode(WeightType::q8_0, encoded, 4, 16000);
    for (std::size_t i = 0; i < x.size(); ++i)
        BOOST_REQUIRE_EQUAL(back[i], at<std::int8_t>(encoded.data, i / 32 * 34 + 2 + i % 32) *
                                         from_half(at<std::uint16_t>(encoded.data, i / 32 * 34)));
}

BOOST_AUTO_TEST_CASE(q4_0_is_ggmls) {
    std::vector<float> x = random_weights(32 * 2000, 6);
    std::fill_n(x.begin() + 32, 32, 0.0f);
    const Encoded encoded = encode(WeightType::q4_0, x, 4, {.fit = false});
    for (std::size_t g = 0; g < 2000; ++g) {
        float amax = 0, max = 0;
        for (std::size_t i = 0; i < 32; ++i)
            if (amax < std::fabs(x[g * 32 + i]))
                amax = std::fabs(x[g * 32 + i]), max = x[g * 32 + i];
        const float d = max / -8;
        const float id = d != 0 ? 1 / d : 0;
        BOOST_REQUIRE_EQUAL(at<std::uint16_t>(encoded.data, g * 18), to_half(d));
        for (std::size_t j = 0; j < 16; ++j) {
            const int low = std::min<int>(15, static_cast<std::int8_t>(x[g * 32 + j] * id + 8.5f));
            const int high =
                std::min<int>(15, static_cast<std::int8_t>(x[g * 32 + j + 16] * id + 8.5f));
            BOOST_REQUIRE_EQUAL(static_cast<int>(encoded.data[g * 18 + 2 + j]), low | high << 4);
        }
    }
}

BOOST_AUTO_TEST_CASE(fitted_q4_0_is_q4_with_a_half_scale) {
    const std::vector<float> x = random_weights(32 * 100, 8);
    const Encoded wide = encode(WeightType::q4, x, 1);
    const Encoded block = encode(WeightType::q4_0, x, 1);
    for (std::size_t g = 0; g < 100; ++g) {
        BOOST_REQUIRE_EQUAL(at<std::uint16_t>(block.data, g * 18),
                            to_half(at<float>(wide.scales, g * 4)));
        BOOST_REQUIRE(std::equal(wide.data.begin() + g * 16, wide.data.begin() + g * 16 + 16,
                                 block.data.begin() + g * 18 + 2));
    }
}

BOOST_AUTO_TEST_CASE(ranges_of_rows_encode_alone) {
    const std::vector<float> x = random_weights(12 * 64, 9);
    for (const Codec& c : codecs()) {
        const Encoded whole = encode(c.type, x, 12);
        Encoded parts;
        for (std::uint64_t row = 0; row < 12; row += 3) {
            const Encoded part =
                encode(c.type, {x.begin() + row * 64, x.begin() + (row + 3) * 64}, 3);
            parts.data.insert(parts.data.end(), part.data.begin(), part.data.end());
            parts.scales.insert(parts.scales.end(), part.scales.begin(), part.scales.end());
        }
        BOOST_TEST((parts.data == whole.data && parts.scales == whole.scales), c.name);
    }
}

BOOST_AUTO_TEST_CASE(extreme_groups_stay_finite) {
    const float denormal = std::numeric_limits<float>::denorm_min();
    for (const float size : {0.0f, denormal, 100 * denormal, 1e-38f, 1e-37f, 1e-30f, 1e-20f, 1e-6f,
                             1e10f, 1e25f, 1e35f, 3.4e38f}) {
        std::vector<float> x(64);
        for (std::size_t i = 0; i < 64; ++i)
            x[i] = size * (i % 2 ? -1.0f : 1.0f) * (static_cast<float>(i + 1) / 64);
        for (const Codec& c : codecs())
            for (const bool fit : {true, false}) {
                if (c.type == WeightType::f16) continue; // has no scale to save it
                const std::vector<float> back =
                    decode(c.type, encode(c.type, x, 1, {.fit = fit}), 1, 64);
                for (std::size_t i = 0; i < 64; ++i) {
                    BOOST_REQUIRE_MESSAGE(std::isfinite(back[i]), c.name << " at " << size);
                    if (size == 0.0f) BOOST_REQUIRE_EQUAL(back[i], 0.0f);
                }
                const bool wide = c.type == WeightType::q8 || c.type == WeightType::q4;
                if (wide && size >= 1e-37f) {
                    const double bound = c.type == WeightType::q8 ? 0.005 : 0.1;
                    for (std::size_t i = 0; i < 64; ++i)
                        BOOST_REQUIRE_MESSAGE(std::fabs(double{back[i]} - x[i]) <= bound * size,
                                              c.name << " at " << size << ": " << x[i] << " is "
                                                     << back[i]);
                }
            }
    }
}

BOOST_AUTO_TEST_CASE(f16_and_f32_keep_what_fits) {
    const std::vector<float> x = {1.0f,  -0.0f, 65504.0f, 0x1p-24f, 0.333251953125f,
                                  -2.5f, 0,     1e-3f};
    BOOST_TEST(decode(WeightType::f32, encode(WeightType::f32, x, 2), 2, 4) == x);
    const std::vector<float> back = decode(WeightType::f16, encode(WeightType::f16, x, 2), 2, 4);
    for (std::size_t i = 0; i < 7; ++i)
        BOOST_TEST(back[i] == x[i]);
    BOOST_TEST(std::signbit(back[1]));
    BOOST_TEST(std::fabs(back[7] - 1e-3f) < 1e-6f);
}

BOOST_AUTO_TEST_SUITE_END()
