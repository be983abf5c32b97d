// SPDX-License-Identifier: MIT
// The trainer's own figures: losses in float64 and greedy replies of the tales models.
#include "engine/evaluate.h"
#include "tests/engine/models.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(trainer_fixture_test)

namespace {

nlohmann::json trainer() {
    std::ifstream in(tales("reference.json"));
    return nlohmann::json::parse(in);
}

Evaluation score(const std::string& model_path, const std::string& data,
                 const Model* reference = nullptr) {
    const Model model = must(Model::open(model_path));
    const auto limit = thin() ? std::optional<std::uint64_t>(1) : std::nullopt;
    const auto rows =
        must(evaluation_rows(must(TokenStream::open(data)), model.config(), 0, limit));
    Parallel parallel(2);
    return must(evaluate(model, reference, nullptr, rows, kernels::best(), parallel, {}));
}

void check_losses(const Evaluation& got, const nlohmann::json& want) {
    if (!thin()) {
        BOOST_TEST(got.targets == want["targets"].get<std::uint64_t>());
        BOOST_TEST(std::fabs(got.loss_nats - want["loss_nats"].get<double>()) <= 1e-5);
        BOOST_REQUIRE(got.row_loss_nats.size() == want["per_row"].size());
    }
    for (std::size_t r = 0; r < got.row_loss_nats.size(); ++r) {
        BOOST_TEST(std::fabs(got.row_loss_nats[r] - want["per_row"][r].get<double>()) <= 1e-4);
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(f32_losses_are_the_trainers) {
    const auto want = trainer();
    if (!thin()) check_losses(score(tales("base.ckpt"), tales("val.tok")), want["base_val"]);
    check_losses(score(tales("chat.ckpt"), tales("chat-val.tok")), want["chat_val"]);
}

BOOST_AUTO_TEST_CASE(quantised_losses_stay_near_and_fitting_helps) {
    if (thin()) return; // the whole text, four times; the bits are compared below
    const TempFolder folder;
    const ModelFile source = must(open_model(tales("base.ckpt")));
    must(write_model(folder / "q8.mnm", "mnm1", source, codec(WeightType::q8)));
    must(write_model(folder / "q4.mnm", "mnm1", source, codec(WeightType::q4)));
    must(write_model(folder / "q4n.mnm", "mnm1", source, codec(WeightType::q4), {.fit = false}));
    const Model f32 = must(Model::open(tales("base.ckpt")));
    const auto figures = trainer()["base_val"];
    const double loss = figures["loss_nats"].get<double>();
    const Evaluation q8 = score(folder / "q8.mnm", tales("val.tok"), &f32);
    BOOST_TEST(std::fabs(q8.loss_nats - loss) <= 0.005);
    BOOST_TEST(std::fabs(q8.divergence->reference_loss_nats - loss) <= 1e-5);
    const Evaluation fitted = score(folder / "q4.mnm", tales("val.tok"), &f32);
    const Evaluation plain = score(folder / "q4n.mnm", tales("val.tok"), &f32);
    BOOST_TEST(fitted.loss_nats < plain.loss_nats);
    BOOST_TEST(fitted.divergence->kl_mean < plain.divergence->kl_mean);
    BOOST_TEST(q8.divergence->kl_mean < fitted.divergence->kl_mean);
}

BOOST_AUTO_TEST_CASE(greedy_replies_are_the_trainers) {
    const Model model = must(Model::open(tales("chat.ckpt")));
    Parallel parallel(2);
    Session session = must(Session::create(model, kernels::best(), parallel));
    const nlohmann::json figures = trainer();
    for (const auto& prompt : figures["greedy"]) {
        session.rewind(0);
        const auto ids = prompt["ids"].get<std::vector<TokenId>>();
        auto logits = must(session.forward(ids));
        for (const auto& pair : prompt["first_logits_top8"]) {
            const double want = pair[1].get<double>();
            BOOST_TEST(std::fabs(logits[pair[0].get<TokenId>()] - want) <= 1e-4 * std::fabs(want));
        }
        std::vector<TokenId> reply;
        const auto want = prompt["reply_ids"].get<std::vector<TokenId>>();
        while (reply.size() < want.size()) {
            reply.push_back(
                static_cast<TokenId>(kernels::best().argmax(logits.data(), logits.size())));
            logits = must(session.forward(std::span(&reply.back(), 1)));
        }
        BOOST_TEST(reply == want, boost::test_tools::per_element());
        if (thin()) break;
    }
}

BOOST_AUTO_TEST_CASE(real_weights_give_the_same_bits_everywhere) {
    const TempFolder folder;
    const ModelFile source = must(open_model(tales("chat.ckpt")));
    for (const WeightType type : {WeightType::f32, WeightType::q8, WeightType::q4}) {
        const std::string path = folder / (std::string(codec(type).name) + ".mnm");
        must(write_model(path, "mnm1", source, codec(type)));
        const Model model = must(Model::open(path));
        const auto ids = some_tokens(thin() ? 10 : 100, model.config().vocab);
        const auto want = all_logits(model, "ref", 2, ids.size(), ids);
        for (const std::string& level : kernels::usable_levels()) {
            for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, ids.size()}) {
                if (level == "ref" && batch != 7) continue;
                BOOST_TEST((want == all_logits(model, level, 2, batch, ids)),
                           codec(type).name << " " << level << " batch " << batch);
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
