// SPDX-License-Identifier: MIT
// Weights in memory, observers of the forward pass, and scales moved between matrices.
#include "engine/analysis/activation_observers.h"
#include "engine/analysis/folding.h"
#include "engine/analysis/weight_set.h"
#include "tests/engine/models.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <functional>
#include <limits>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(weight_set_test)

BOOST_AUTO_TEST_CASE(a_weight_set_runs_changes_and_restores) {
    const TempFolder folder;
    for (const WeightType type : {WeightType::f32, WeightType::q8}) {
        const Model model = random_model(folder, odd_config(), type);
        Parallel parallel(2);
        WeightSet set = must(WeightSet::copy(model, parallel));
        const auto ids = some_tokens(thin() ? 10 : 40, 333);
        const auto before = all_logits(set.model(), "ref", 2, 40, ids);
        if (type == WeightType::f32) BOOST_TEST((before == all_logits(model, "ref", 2, 40, ids)));
        std::uint64_t weights = 0;
        for (const MatrixSlice& m : set.matrices()) {
            weights += m.weights();
            for (float& w : set.weights(m))
                w *= 0.5f;
        }
        BOOST_TEST(weights + 5 * 288 == odd_config().parameters());
        BOOST_TEST((before != all_logits(set.model(), "ref", 2, 40, ids)));
        set.restore(parallel);
        BOOST_TEST((before == all_logits(set.model(), "ref", 2, 40, ids)));
        BOOST_TEST(set.matrices()[1].name == "blk.0.attn_q.weight");
        BOOST_TEST(set.matrices()[2].first_row == 288U);
        BOOST_TEST(set.matrices()[2].rows == 96U);
    }
}

/// The bits that a written file gives.
BOOST_AUTO_TEST_CASE(an_encoded_model_is_the_written_one) {
    const TempFolder folder;
    const Model source = random_model(folder, odd_config(), WeightType::f32);
    const auto ids = some_tokens(thin() ? 10 : 40, 333);
    Parallel parallel(2);
    WeightSet set = must(WeightSet::copy(source, parallel));
    for (const WeightType type : {WeightType::q8, WeightType::q4}) {
        const Model written = random_model(folder, odd_config(), type);
        const EncodedModel encoded = must(EncodedModel::encode(set, codec(type), {}, parallel));
        BOOST_TEST((all_logits(encoded.model(), "ref", 1, 40, ids) ==
                    all_logits(written, "ref", 1, 40, ids)));
        BOOST_TEST(std::fabs(stored_bits(source.file(), codec(type)) /
                                 static_cast<double>(odd_config().parameters()) -
                             written.file().bits_per_weight()) < 1e-12);
    }
}

BOOST_AUTO_TEST_CASE(a_weight_that_is_no_number_is_named) {
    const TempFolder folder;
    const std::string path = write_random_checkpoint(folder / "nan.ckpt", small_config(), 1);
    auto bytes = read_bytes(path);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + 4096 + 4 * (5 * 64 + 3), &nan, 4);
    write_bytes(path, bytes);
    Parallel parallel(1);
    const auto got = WeightSet::copy(must(Model::open(path)), parallel);
    BOOST_REQUIRE(!got);
    BOOST_TEST(got.error().message.find("token_embd.weight row 5") != std::string::npos);
}

/// Sees everything once, changes nothing.
struct Counter : Observer {
    std::map<Site, std::size_t> rows;
    void see(Place place, std::size_t layer, const ObservedRows& seen) override {
        rows[{layer, place}] += seen.count;
    }
};

BOOST_AUTO_TEST_CASE(an_observer_sees_every_place_and_changes_nothing_by_looking) {
    const TempFolder folder;
    const Model model = random_model(folder, odd_config(), WeightType::q8);
    Parallel parallel(2);
    Session plain = must(Session::create(model, kernels::best(), parallel));
    Session watched = must(Session::create(model, kernels::best(), parallel));
    Counter counter;
    watched.observe(&counter);
    const auto ids = some_tokens(70, 333);
    std::vector<float> a, b;
    const auto keep = [](std::vector<float>& out) {
        return [&out](std::size_t, std::span<const float> x) {
            out.insert(out.end(), x.begin(), x.end());
        };
    };
    must(plain.forward_all(ids, keep(a)));
    must(watched.forward_all(ids, keep(b)));
    BOOST_TEST((a == b));
    using Place = Observer::Place;
    for (std::size_t layer = 0; layer < 2; ++layer) {
        for (const Place place : {Place::residual, Place::attention_input, Place::output_input,
                                  Place::ffn_input, Place::down_input})
            BOOST_TEST((counter.rows[{layer, place}] == 70));
        BOOST_TEST((counter.rows[{layer, Place::key}] == 4 * 70)); // four key/value heads
        BOOST_TEST((counter.rows[{layer, Place::value}] == 4 * 70));
    }
    BOOST_TEST((counter.rows[{2, Place::residual}] == 70));
    BOOST_TEST((counter.rows[{2, Place::head_input}] == 70));
    BOOST_TEST((counter.rows[{2, Place::logits}] == 70));
    watched.observe(nullptr);
    watched.rewind(0);
    must(watched.forward_all(ids, keep(b)));
    BOOST_TEST((counter.rows[{2, Place::logits}] == 70));
}

/// An observer that puts zeros into one place.
struct Silencer : Observer {
    Place where;
    explicit Silencer(Place place) : where(place) {}
    void see(Place place, std::size_t, const ObservedRows& seen) override {
        if (place != where) return;
        for (std::size_t t = 0; t < seen.count; ++t)
            std::fill(seen.row(t).begin(), seen.row(t).end(), 0.0f);
    }
};

BOOST_AUTO_TEST_CASE(what_an_observer_writes_is_what_the_pass_goes_on_with) {
    const TempFolder folder;
    const Model model = random_model(folder, small_config(), WeightType::f32);
    Parallel parallel(2);
    Session session = must(Session::create(model, kernels::best(), parallel));
    const auto ids = some_tokens(20, 288);
    const auto run = [&](Observer* observer) {
        std::vector<float> out;
        session.observe(observer);
        session.rewind(0);
        must(session.forward_all(ids, [&](std::size_t, std::span<const float> x) {
            out.insert(out.end(), x.begin(), x.end());
        }));
        return out;
    };
    using Place = Observer::Place;
    const auto plain = run(nullptr);
    Silencer head(Place::head_input);
    BOOST_TEST((run(&head) == std::vector<float>(plain.size())));
    // Without values, the attention's output is zero as well.
    Silencer values(Place::value), mixed(Place::output_input), keys(Place::key);
    BOOST_TEST((run(&values) == run(&mixed)));
    BOOST_TEST((run(&values) != plain));
    BOOST_TEST((run(&keys) != plain));
    BOOST_TEST((run(&keys) != run(&values)));
    for (const Place place : {Place::residual, Place::attention_input, Place::ffn_input,
                              Place::down_input, Place::logits}) {
        Silencer silencer(place);
        BOOST_TEST((run(&silencer) != plain));
    }
    BOOST_TEST((run(nullptr) == plain));
}

BOOST_AUTO_TEST_CASE(ranges_outliers_and_snr_of_activations) {
    // Two batches of one token each, four channels; channel 2 is the outlier.
    std::vector<float> first = {1, -2, 30, 1}, second = {-2, 1, -60, 2};
    const auto site = Site{1, Observer::Place::down_input};
    RangeObserver ranges;
    ranges.see(site.second, site.first, {first.data(), 1, 4, 4});
    ranges.see(site.second, site.first, {second.data(), 1, 4, 4});
    const SiteRanges& got = ranges.sites().at(site);
    const std::vector<float> largest = {2, 2, 60, 2};
    BOOST_TEST(got.channel_max == largest, boost::test_tools::per_element());
    BOOST_TEST(got.max == 60);
    BOOST_TEST(got.token_max_low == 30);
    BOOST_TEST(got.token_max_mean == 45);
    BOOST_TEST(got.median_channel() == 2);
    BOOST_TEST((got.outliers(6) == std::vector<std::size_t>{2}));
    BOOST_TEST(got.outliers(30).empty());
    BOOST_TEST(site_name(site, 2) == "blk.1 down input");
    BOOST_TEST(site_name({2, Observer::Place::residual}, 2) == "residual stream, last");

    SnrObserver snr(ranges.sites(), {{4, Granularity::tensor()}, {4, Granularity::row()}});
    snr.see(site.second, site.first, {first.data(), 1, 4, 4});
    // Per tensor the step is 60/7: 1, -2 and 1 become 0 and 30 becomes 4 steps.
    const double tensor = 10 * std::log10(906 / (6 + std::pow(30 - 240.0 / 7, 2)));
    const double token = 10 * std::log10(906.0 / 6); // a step of 30/7: 30 stays
    BOOST_TEST(std::fabs(snr.sites().at(site)[0].snr_db() - tensor) < 1e-5);
    BOOST_TEST(std::fabs(snr.sites().at(site)[1].snr_db() - token) < 1e-5);

    QuantizingObserver quantizing(ranges.sites(),
                                  {UniformQuantizer{4, Granularity::tensor()}, {}, {}});
    quantizing.see(Observer::Place::residual, 1, {first.data(), 1, 4, 4});
    BOOST_TEST(first[1] == -2);
    quantizing.see(site.second, site.first, {first.data(), 1, 4, 4});
    BOOST_TEST(first[1] == 0);
    BOOST_TEST(std::fabs(first[2] - 240.0f / 7) < 1e-4f);
}

/// Every fold, applied to a model of three query heads to a key/value head.
BOOST_AUTO_TEST_CASE(folds_are_exact_and_do_something) {
    const TempFolder folder;
    const Model model = random_model(folder, odd_config(), WeightType::f32);
    Parallel parallel(2);
    WeightSet set = must(WeightSet::copy(model, parallel));
    const auto ids = some_tokens(thin() ? 10 : 60, 333);
    const auto plain = all_logits(model, "ref", 2, 60, ids);
    double largest = 0;
    for (const float v : plain)
        largest = std::max<double>(largest, std::fabs(v));
    std::vector<LayerInputs> inputs(2);
    for (std::size_t i = 0; i < 2; ++i) {
        const auto some = [&](std::size_t count) {
            std::vector<float> x = random_floats(count, 100 + i + count);
            for (float& v : x)
                v = 5 * std::fabs(v);
            return x;
        };
        inputs[i] = {some(288), some(288), some(288), some(416)};
    }
    const std::function<void()> folds[] = {
        [&] { fold_norms(set); }, [&] { smooth_norms(set, inputs); },
        [&] { smooth_ffn(set, inputs); }, [&] { smooth_values(set, inputs); }};
    for (const auto& fold : folds) {
        fold();
        const auto folded = all_logits(set.model(), "ref", 2, 60, ids);
        double worst = 0;
        for (std::size_t i = 0; i < plain.size(); ++i)
            worst = std::max<double>(worst, std::fabs(plain[i] - folded[i]));
        BOOST_TEST(worst < 1e-4 * largest);
        double moved = 0;
        for (const MatrixSlice& m : set.matrices()) {
            std::vector<float> original(m.weights());
            set.original(m, original);
            const auto now = set.weights(m);
            for (std::size_t k = 0; k < original.size(); ++k)
                moved = std::max<double>(moved, std::fabs(original[k] - now[k]));
        }
        BOOST_TEST(moved > 0.01);
        set.restore(parallel);
    }
    fold_norms(set);
    for (const float w : set.tensor("blk.1.ffn_norm.weight"))
        BOOST_TEST(w == 1.0f);
    const std::vector<float> s =
        smoothing(std::vector<float>{4, 0, 9}, std::vector<float>{1, 1, 0});
    BOOST_TEST(s == (std::vector<float>{2, 1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
