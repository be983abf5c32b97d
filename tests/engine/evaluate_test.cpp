// SPDX-License-Identifier: MIT
// Loss and divergence where the right value is known beforehand.
#include "engine/evaluate.h"
#include "tests/engine/double_forward.h"
#include "tests/engine/models.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(evaluate_test)

namespace {

Evaluation score(const Model& model, const Model* reference, const std::vector<TokenId>& ids) {
    Parallel parallel(2);
    const auto rows = must(evaluation_rows(ids, model.config(), {}));
    return must(evaluate(model, reference, nullptr, rows, kernels::best(), parallel, {}));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_model_does_not_diverge_from_itself) {
    const TempFolder folder;
    const Model model = random_model(folder, odd_config(), WeightType::q8);
    const Evaluation got = score(model, &model, some_tokens(300, 333));
    BOOST_TEST(std::fabs(got.divergence->kl_mean) < 1e-6);
    BOOST_TEST(std::fabs(got.divergence->kl_max) < 1e-6);
    BOOST_TEST(got.divergence->top1_agreement == 1.0);
    BOOST_TEST(got.divergence->reference_loss_nats == got.loss_nats);
}

/// A model whose final norm is zero gives every token the same logit.
BOOST_AUTO_TEST_CASE(a_uniform_model_has_the_vocabulary_as_perplexity) {
    const TempFolder folder;
    const ModelConfig config = odd_config();
    const std::string path = write_random_checkpoint(folder / "uniform.ckpt", config, 3);
    auto bytes = read_bytes(path);
    std::fill(bytes.end() - static_cast<std::ptrdiff_t>(config.width * 4), bytes.end(),
              std::byte{0});
    write_bytes(path, bytes);
    const Evaluation got = score(must(Model::open(path)), nullptr, some_tokens(200, config.vocab));
    BOOST_TEST(std::fabs(got.perplexity - 333) < 0.001);
}

BOOST_AUTO_TEST_CASE(loss_and_divergence_are_those_of_plain_double) {
    const TempFolder folder;
    const Model p = random_model(folder, odd_config(), WeightType::f32, 1);
    const Model q = random_model(folder, odd_config(), WeightType::f32, 2);
    const auto ids = some_tokens(101, 333);
    const Evaluation got = score(q, &p, ids);
    const std::vector<TokenId> inputs(ids.begin(), ids.end() - 1);
    const auto lp = DoubleModel(p.file()).logits(inputs), lq = DoubleModel(q.file()).logits(inputs);
    double loss = 0, kl = 0;
    for (std::size_t t = 0; t < inputs.size(); ++t) {
        double sp = 0, sq = 0, term = 0;
        for (std::size_t i = 0; i < 333; ++i) {
            sp += std::exp(lp[t][i]);
            sq += std::exp(lq[t][i]);
        }
        for (std::size_t i = 0; i < 333; ++i) {
            term += std::exp(lp[t][i]) / sp *
                    std::log2(std::exp(lp[t][i]) / sp / (std::exp(lq[t][i]) / sq));
        }
        kl += term / 100;
        loss -= std::log(std::exp(lq[t][ids[t + 1]]) / sq) / 100;
    }
    BOOST_TEST(std::fabs(got.loss_nats - loss) < 1e-5);
    BOOST_TEST(std::fabs(got.divergence->kl_mean - kl) < 1e-5 * kl);
    BOOST_TEST(got.divergence->kl_max >= got.divergence->kl_p99);
    BOOST_TEST(got.divergence->kl_p99 >= got.divergence->kl_mean);
    BOOST_TEST(got.targets == 100U);
}

BOOST_AUTO_TEST_CASE(rows_are_cut_at_the_context_and_a_short_rest_is_dropped) {
    const ModelConfig config = odd_config(); // context 160
    const auto ids = some_tokens(400, 333);
    const auto rows = must(evaluation_rows(ids, config, {}));
    BOOST_REQUIRE(rows.size() == 2U);
    BOOST_TEST(rows[1].inputs.front() == ids[160]);
    BOOST_TEST(rows[1].targets.back() == ids[320]);
    BOOST_TEST(must(evaluation_rows(ids, config, 1)).size() == 1U);
    const auto brief = must(evaluation_rows(std::span(ids).first(5), config, {}));
    BOOST_TEST(brief.at(0).inputs.size() == 4U);
    BOOST_TEST(!evaluation_rows(std::span(ids).first(1), config, {}));
}

BOOST_AUTO_TEST_CASE(a_reference_with_a_shorter_context_is_refused) {
    const TempFolder folder;
    ModelConfig brief = odd_config();
    brief.context = 32;
    const Model model = random_model(folder, odd_config(), WeightType::q8, 1);
    const Model reference = random_model(folder, brief, WeightType::q8, 2);
    const auto rows = must(evaluation_rows(some_tokens(200, 333), model.config(), {}));
    Parallel parallel(1);
    const auto got = evaluate(model, &reference, nullptr, rows, kernels::best(), parallel, {});
    BOOST_REQUIRE(!got);
    BOOST_TEST(got.error().message.find("32") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
