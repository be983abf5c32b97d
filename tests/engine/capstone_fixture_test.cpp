// SPDX-License-Identifier: MIT
// Every figure of the rate-distortion lesson, to the digits printed there, from the functions that
// the study uses. (The two figures after retraining belong to the trainer.)
#include "engine/analysis/distortion.h"
#include "engine/analysis/divergence.h"
#include "engine/analysis/memory_bound.h"
#include "engine/analysis/quantizer.h"
#include "engine/analysis/rate_distortion.h"
#include "tests/engine/capstone.h"
#include "tests/formats/synthetic.h"

#include <boost/test/unit_test.hpp>

#include <cstdio>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(capstone_fixture_test)

namespace {

std::string printed(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// "%.6f" of each, as the lesson prints them.
std::vector<std::string> six_digits(const std::vector<double>& values) {
    std::vector<std::string> texts;
    for (const double v : values)
        texts.push_back(printed("%.6f", v));
    return texts;
}

/// Figures printed with all their digits: the lesson's own run and the weights in the fixture agree
/// to about ten of them (plain Python on the fixture gives this test's values, not the lesson's).
void same(double got, double expected) {
    BOOST_TEST(std::fabs(got - expected) <= 1e-9 * std::fabs(expected),
               printed("%.17g", got) << " is not " << printed("%.17g", expected));
}

const Capstone& trained() {
    static const Capstone model;
    return model;
}
const DoubleMatrix& matrix(const std::string& name) {
    return trained().matrices.at(name);
}

DoubleMatrix quantized(const DoubleMatrix& m, int bits, Granularity by) {
    DoubleMatrix out = m;
    fake_quantize(m.all(), m.rows, m.cols, {bits, by}, std::span(out.values));
    return out;
}
double snr_at(const DoubleMatrix& m, int bits, Granularity by) {
    return snr_db(m.all(), quantized(m, bits, by).all());
}
std::vector<double> snr_of_all(int bits, Granularity by) {
    std::vector<double> snr;
    for (const std::string& name : Capstone::names())
        snr.push_back(snr_at(matrix(name), bits, by));
    return snr;
}

double mean_loss(const Capstone& model, const DoubleMatrix& logits) {
    double sum = 0;
    for (std::size_t t = 0; t + 1 < model.tokens.size(); ++t)
        sum += loss_nats(logits.row(t), model.tokens[t + 1]);
    return sum / static_cast<double>(model.tokens.size() - 1);
}
double mean_kl(const DoubleMatrix& p, const DoubleMatrix& q) {
    double sum = 0;
    for (std::size_t t = 0; t + 1 < p.rows; ++t)
        sum += divergence_bits(p.row(t), q.row(t));
    return sum / static_cast<double>(p.rows - 1);
}

/// The point of the curve where all eight matrices have `bits` bits.
RatePoint point(int bits, Granularity by) {
    Capstone model = trained();
    double weights = 0;
    for (auto& [name, m] : model.matrices) {
        m = quantized(m, bits, by);
        weights += static_cast<double>(m.values.size());
    }
    const DoubleMatrix logits = model.logits();
    RatePoint result;
    result.bits = bits;
    result.bits_per_weight = bits;
    result.loss_nats = mean_loss(model, logits);
    result.perplexity = perplexity_of(result.loss_nats);
    result.kl_bits = mean_kl(trained().logits(), logits);
    result.length = description_length(weights * bits, 31, result.loss_nats);
    return result;
}
std::vector<RatePoint> curve(Granularity by) {
    std::vector<RatePoint> points;
    for (int bits = 2; bits <= 8; ++bits)
        points.push_back(point(bits, by));
    return points;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_model_is_the_lessons) {
    const DoubleMatrix logits = trained().logits();
    double worst = 0;
    for (std::size_t i = 0; i < logits.values.size(); ++i)
        worst = std::max(worst, std::fabs(logits.values[i] - trained().fixture_logits.values[i]));
    BOOST_TEST(worst < 1e-11);
    same(mean_loss(trained(), logits), trained().fixture_loss);
    BOOST_TEST(printed("%.8e", mean_loss(trained(), logits)) == "8.16963617e-05");
    same(raw_bits(32, 18), 133.437600046154);
}

BOOST_AUTO_TEST_CASE(largest_weights) {
    std::vector<double> largest;
    for (const std::string& name : Capstone::names())
        largest.push_back(magnitudes(matrix(name).all()).max);
    const std::vector<std::string> expected = {"2.008726", "1.961393", "1.477834", "0.722783",
                                               "0.943531", "2.144984", "1.989670", "1.578401"};
    BOOST_TEST(six_digits(largest) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_head_at_8_bits) {
    const DoubleMatrix& head = matrix("WU");
    const UniformQuantizer eight{8, Granularity::tensor()};
    const double scale = uniform_scales(head.all(), head.rows, head.cols, eight)[0];
    same(scale, 0.012428357863072868);
    const int first[] = {35, 36, 42, 57, 41, 34};
    for (std::size_t i = 0; i < 6; ++i)
        BOOST_TEST(quantize_value(head.values[i], scale, 127) == first[i]);
    int rail = 0;
    for (const double w : head.values)
        rail += std::abs(quantize_value(w, scale, 127)) == 127 ? 1 : 0;
    BOOST_TEST(rail == 1);
    same(snr_at(head, 8, Granularity::tensor()), 45.94462791186676);
}

BOOST_AUTO_TEST_CASE(the_head_on_fixed_point_grids) {
    const auto on_grid = [](const FixedPoint& grid, int& overflows) {
        std::vector<double> out;
        for (const double w : matrix("WU").values) {
            bool overflowed = false;
            out.push_back(fixed_point(w, grid, &overflowed));
            overflows += overflowed ? 1 : 0;
        }
        return snr_db(matrix("WU").all(), std::span<const double>(out));
    };
    int saturated = 0;
    same(on_grid({0, 7}, saturated), 18.639546316414158);
    BOOST_TEST(saturated == 7);
    saturated = 0;
    same(on_grid({1, 6}, saturated), 43.34727862310058);
    BOOST_TEST(saturated == 0);
}

BOOST_AUTO_TEST_CASE(snr_at_4_bits) {
    const std::vector<std::string> tensor = {"17.959081", "22.175934", "22.639553", "22.930464",
                                             "22.891831", "21.046100", "21.888738", "20.832276"};
    const std::vector<std::string> row = {"25.941052", "27.473702", "26.253828", "26.628783",
                                          "24.780850", "22.369411", "24.097818", "23.107567"};
    BOOST_TEST(six_digits(snr_of_all(4, Granularity::tensor())) == tensor,
               boost::test_tools::per_element());
    BOOST_TEST(six_digits(snr_of_all(4, Granularity::row())) == row,
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_embedding_against_the_model_line) {
    std::vector<double> snr;
    for (int bits = 2; bits <= 8; ++bits)
        snr.push_back(snr_at(matrix("E"), bits, Granularity::tensor()));
    const std::vector<std::string> expected = {"3.901893",  "11.132618", "17.959081", "25.080645",
                                               "31.795283", "37.245509", "42.976012"};
    BOOST_TEST(six_digits(snr) == expected, boost::test_tools::per_element());
    const double crest = magnitudes(matrix("E").all()).crest();
    same(crest, 2.8769919967334148);
    same(model_intercept_db(crest), -4.408773075280628);
    same(model_line_db(8, crest), 48.16 - 4.408773075280628);
}

BOOST_AUTO_TEST_CASE(mean_gain_of_each_bit) {
    std::vector<double> mean(7);
    for (int bits = 2; bits <= 8; ++bits)
        for (const double snr : snr_of_all(bits, Granularity::tensor()))
            mean[static_cast<std::size_t>(bits - 2)] += snr / 8;
    const std::vector<std::string> expected = {"9.898346", "7.277465", "6.469852",
                                               "6.664511", "5.572157", "6.544953"};
    BOOST_TEST(six_digits(gained_db(mean)) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(perplexity_divergence_and_description_length) {
    const struct {
        const char *perplexity, *kl, *corpus, *total;
    } tensor[] = {{"11177.06975", "1.34e+01", "416.90", "960.9"},
                  {"14.72530", "3.88e+00", "120.29", "936.3"},
                  {"3.03257", "1.60e+00", "49.62", "1137.6"},
                  {"1.06840", "9.53e-02", "2.96", "1363.0"},
                  {"1.00023", "2.13e-04", "0.01", "1632.0"},
                  {"1.00012", "6.36e-05", "0.01", "1904.0"},
                  {"1.00008", "4.55e-06", "0.00", "2176.0"}},
      row[] = {{"167.77026", "7.39e+00", "", ""}, {"1.65351", "7.25e-01", "", ""},
               {"1.11390", "1.55e-01", "", ""},   {"1.00272", "3.78e-03", "", ""},
               {"1.00009", "1.62e-05", "", ""},   {"1.00011", "3.62e-05", "", ""},
               {"1.00008", "1.74e-06", "", ""}};
    for (int bits = 2; bits <= 8; ++bits) {
        const auto at = static_cast<std::size_t>(bits - 2);
        const RatePoint t = point(bits, Granularity::tensor());
        BOOST_TEST(printed("%.5f", t.perplexity) == tensor[at].perplexity);
        BOOST_TEST(printed("%.2e", t.kl_bits) == tensor[at].kl);
        BOOST_TEST(t.length.weights == 272.0 * bits);
        BOOST_TEST(printed("%.2f", t.length.corpus) == tensor[at].corpus);
        BOOST_TEST(printed("%.1f", t.length.total()) == tensor[at].total);
        const RatePoint r = point(bits, Granularity::row());
        BOOST_TEST(printed("%.5f", r.perplexity) == row[at].perplexity);
        BOOST_TEST(printed("%.2e", r.kl_bits) == row[at].kl);
    }
    same(point(3, Granularity::tensor()).perplexity, 14.725295329311486);
}

/// "5-6 bits per tensor, 4-5 per row", and 3 bits have the shortest description.
BOOST_AUTO_TEST_CASE(knees) {
    const std::vector<RatePoint> tensor = curve(Granularity::tensor());
    const std::vector<RatePoint> row = curve(Granularity::row());
    const Knee t = find_knee(tensor, {}).value(), r = find_knee(row, {}).value();
    BOOST_TEST(tensor[t.before.value()].bits == 5);
    BOOST_TEST(tensor[t.index].bits == 6);
    BOOST_TEST(row[r.before.value()].bits == 4);
    BOOST_TEST(row[r.index].bits == 5);
    for (const RatePoint& p : tensor)
        BOOST_TEST((p.bits == 3 || p.length.total() > tensor[1].length.total()));
}

BOOST_AUTO_TEST_CASE(the_residual_stream) {
    const DoubleMatrix& h = trained().fixture_residual;
    std::vector<double> channels(h.cols), tokens;
    for (std::size_t t = 0; t < h.rows; ++t) {
        tokens.push_back(magnitudes(h.row(t)).max);
        for (std::size_t i = 0; i < h.cols; ++i)
            channels[i] = std::max(channels[i], std::fabs(h.at(t, i)));
    }
    const std::vector<std::string> expected = {"67.856716", "26.318431", "33.185321", "24.311239"};
    BOOST_TEST(six_digits(channels) == expected, boost::test_tools::per_element());
    same(*std::min_element(tokens.begin(), tokens.end()), 10.66671248970273);
    same(*std::max_element(tokens.begin(), tokens.end()), 67.85671611427112);
    same(snr_at(h, 8, Granularity::tensor()), 44.77927512063253);
    same(snr_at(h, 8, Granularity::row()), 49.708883758554336);
    same(snr_at(h, 4, Granularity::tensor()), 18.546316356983755);
    same(snr_at(h, 4, Granularity::row()), 23.62533090710828);
}

BOOST_AUTO_TEST_CASE(the_head_alone_and_the_logits_at_4_bits) {
    const DoubleMatrix logits = trained().logits();
    Capstone model = trained();
    model.matrices["WU"] = quantized(matrix("WU"), 4, Granularity::tensor());
    same(mean_kl(logits, model.logits()), 0.0009081778263592612);
    same(mean_kl(logits, quantized(logits, 4, Granularity::tensor())), 0.24446304315149164);
    same(magnitudes(logits.all()).max, 117.07313909192767);
}

BOOST_AUTO_TEST_CASE(a_stale_scale_saturates_or_wraps) {
    const DoubleMatrix& head = matrix("WU");
    const double scale = 0.3 / 127;
    int overflows = 0;
    for (const double w : head.values)
        overflows += std::fabs(std::round(w / scale)) > 127 ? 1 : 0;
    BOOST_TEST(overflows == 59);
    same(head.at(0, 0) / scale, 183.32863234824427);
    BOOST_TEST(stale_quantize(head.at(0, 0), scale, 8, Overflow::saturate) == 127);
    BOOST_TEST(stale_quantize(head.at(0, 0), scale, 8, Overflow::wrap) == -73);
    const auto with = [&](Overflow overflow, double& snr) {
        Capstone model = trained();
        for (double& w : model.matrices["WU"].values)
            w = scale * stale_quantize(w, scale, 8, overflow);
        snr = snr_db(head.all(), model.matrices["WU"].all());
        return perplexity_of(mean_loss(model, model.logits()));
    };
    double snr = 0;
    same(with(Overflow::saturate, snr), 4.59455301907125);
    same(snr, 4.04437859575337);
    same(with(Overflow::wrap, snr), 967932610.3346702);
    same(snr, -0.6855708294558249);
}

BOOST_AUTO_TEST_CASE(pooled_errors_at_4_bits) {
    PooledErrors errors;
    for (const std::string& name : Capstone::names()) {
        const DoubleMatrix& m = matrix(name);
        const UniformQuantizer four{4, Granularity::tensor()};
        const double scale = uniform_scales(m.all(), m.rows, m.cols, four)[0];
        for (const double w : m.values)
            errors.add((w - scale * quantize_value(w, scale, four.q_max())) / scale);
    }
    BOOST_TEST(errors.count() == 272U);
    same(errors.mean(), -0.0134772696577325);
    same(errors.twelve_mean_square(), 0.9721392833809697);
    same(errors.max(), 0.4971076506487199);
}

/// The lesson's 36.43 and 30.39 dB are of one random sample, the model and the gain are not.
BOOST_AUTO_TEST_CASE(nearest_beats_truncation_by_6_db) {
    const FixedPoint nearest{1, 6}, floor{1, 6, Rounding::floor};
    same(uniform_error_snr_db(0.3 * 0.3, nearest.step()), 36.45783703454724);
    Random random(26);
    SignalAndNoise rounded, truncated;
    for (int i = 0; i < 400000; ++i) {
        const double x = 0.3 * random.normal(), r = fixed_point(x, nearest);
        const double t = fixed_point(x, floor);
        rounded.add(std::span<const double>(&x, 1), std::span<const double>(&r, 1));
        truncated.add(std::span<const double>(&x, 1), std::span<const double>(&t, 1));
    }
    BOOST_TEST(std::fabs(rounded.snr_db() - 36.43) < 0.1);
    BOOST_TEST(std::fabs(truncated.snr_db() - 30.39) < 0.1);
    BOOST_TEST(std::fabs(rounded.snr_db() - truncated.snr_db() - 6.02) < 0.05);
}

BOOST_AUTO_TEST_CASE(memory_of_a_70b_model) {
    const double bits[] = {16, 8, 4}, gigabytes[] = {140, 70, 35}, kib[] = {320, 160, 80};
    const char* speed[] = {"23.928571", "47.857143", "95.714286"};
    const char* cache_size[] = {"2.684355", "1.342177", "0.671089"};
    const char* both[] = {"23.478398", "46.956795", "93.913590"};
    for (std::size_t i = 0; i < 3; ++i) {
        const double weights = weight_bytes(70e9, bits[i]);
        const double token = cache_bytes_per_token(80, 8, 128, bits[i]);
        BOOST_TEST(weights == gigabytes[i] * 1e9);
        BOOST_TEST(token == kib[i] * 1024);
        BOOST_TEST(printed("%.6f", decode_bound(3.35e12, weights, 0)) == speed[i]);
        BOOST_TEST(printed("%.6f", token * 8192 / 1e9) == cache_size[i]);
        BOOST_TEST(printed("%.6f", decode_bound(3.35e12, weights, token * 8192)) == both[i]);
    }
}

BOOST_AUTO_TEST_SUITE_END()
