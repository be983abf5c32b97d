// SPDX-License-Identifier: MIT
// The forward pass against the same model in double, and its refusals.
#include "tests/engine/double_forward.h"
#include "tests/engine/models.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(forward_test)

BOOST_AUTO_TEST_CASE(f32_agrees_with_double) {
    const TempFolder folder;
    ModelConfig untouched = small_config();
    for (const ModelConfig& config : {odd_config(), untouched}) {
        if (thin() && config == untouched) continue; // the odd one is the harder
        const Model model = random_model(folder, config, WeightType::f32);
        const auto ids = some_tokens(config.context, config.vocab);
        const auto want = DoubleModel(model.file()).logits(ids);
        const auto got = all_logits(model, kernels::best().level, 2, ids.size(), ids);
        double largest = 0, worst = 0;
        for (std::size_t t = 0; t < want.size(); ++t) {
            for (std::size_t i = 0; i < config.vocab; ++i) {
                largest = std::max(largest, std::fabs(want[t][i]));
                worst = std::max(worst, std::fabs(want[t][i] - got[t * config.vocab + i]));
            }
        }
        BOOST_TEST(worst <= 1e-4 * largest);
        BOOST_TEST(largest > 0.1);
    }
}

/// q8 loses little against the double model of its own (decoded) weights: only the activations'
/// rounding.
BOOST_AUTO_TEST_CASE(quantised_products_are_near_the_double_model_of_the_same_weights) {
    const TempFolder folder;
    for (const WeightType type : {WeightType::q8, WeightType::q4}) {
        const Model model = random_model(folder, odd_config(), type);
        const auto ids = some_tokens(thin() ? 20 : 100, model.config().vocab);
        const auto want = DoubleModel(model.file()).logits(ids);
        const auto got = all_logits(model, kernels::best().level, 2, ids.size(), ids);
        double difference = 0, power = 0;
        for (std::size_t t = 0; t < want.size(); ++t) {
            for (std::size_t i = 0; i < want[t].size(); ++i) {
                difference += std::pow(want[t][i] - got[t * want[t].size() + i], 2);
                power += std::pow(want[t][i], 2);
            }
        }
        BOOST_TEST(std::sqrt(difference / power) < 0.03);
    }
}

BOOST_AUTO_TEST_CASE(the_last_row_is_what_forward_returns_and_rewinding_repeats_it) {
    const TempFolder folder;
    const Model model = random_model(folder, odd_config(), WeightType::q8);
    const auto ids = some_tokens(70, model.config().vocab);
    const auto all = all_logits(model, "ref", 1, ids.size(), ids);
    Parallel parallel(2);
    Session session = must(Session::create(model, kernels::best(), parallel));
    for (int round = 0; round < 2; ++round) {
        const auto last = must(session.forward(ids));
        BOOST_TEST(session.position() == ids.size());
        BOOST_TEST((std::equal(last.begin(), last.end(), all.end() - model.config().vocab)));
        session.rewind(0);
    }
    must(session.forward(ids));
    session.rewind(50);
    const auto again = must(session.forward(std::span(ids).subspan(50)));
    BOOST_TEST((std::equal(again.begin(), again.end(), all.end() - model.config().vocab)));
}

BOOST_AUTO_TEST_CASE(refusals_name_the_numbers) {
    const TempFolder folder;
    const Model model = random_model(folder, odd_config(), WeightType::q8);
    Parallel parallel(1);
    Session session = must(Session::create(model, kernels::best(), parallel));
    BOOST_TEST(!session.forward({}));
    const std::vector<TokenId> outside = {1, 333};
    const auto token = session.forward(outside);
    BOOST_REQUIRE(!token);
    BOOST_TEST(token.error().message.find("333") != std::string::npos);
    const auto long_text = some_tokens(161, 333);
    const auto many = session.forward(long_text);
    BOOST_REQUIRE(!many);
    BOOST_TEST(many.error().message.find("160") != std::string::npos);
    BOOST_TEST(session.position() == 0U);
}

/// A NaN spreads, an infinity becomes one. Neither is answered.
BOOST_AUTO_TEST_CASE(logits_that_are_no_numbers_are_refused) {
    const TempFolder folder;
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        const std::string path = write_random_checkpoint(folder / "bad.ckpt", odd_config(), 5);
        auto bytes = read_bytes(path);
        for (std::size_t i = 0; i < 333 * 288; i += 7)
            std::memcpy(&bytes[4096 + 4 * i], &bad, 4);
        write_bytes(path, bytes);
        const Model model = must(Model::open(path));
        Parallel parallel(1);
        Session session = must(Session::create(model, kernels::best(), parallel));
        const auto ids = some_tokens(3, 333);
        const auto last = session.forward(ids);
        BOOST_REQUIRE(!last);
        BOOST_TEST(last.error().message.find("not finite") != std::string::npos);
        BOOST_TEST(!session.forward_all(ids, [](std::size_t, std::span<const float>) {}));
    }
}

BOOST_AUTO_TEST_SUITE_END()
