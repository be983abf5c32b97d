// SPDX-License-Identifier: MIT
// The same logits to the bit: every usable level, thread count and batch split.
#include "tests/engine/models.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <random>
#include <utility>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(bits_test)

BOOST_AUTO_TEST_CASE(do_not_depend_on_level_threads_or_batches) {
    const TempFolder folder;
    for (const WeightType type : {WeightType::q8, WeightType::q4, WeightType::f32}) {
        const Model model = random_model(folder, odd_config(), type);
        const auto ids = some_tokens(thin() ? 20 : 150, model.config().vocab);
        const auto want = all_logits(model, "ref", 1, ids.size(), ids);
        for (const std::string& level : kernels::usable_levels()) {
            for (const unsigned threads : {1U, 2U, 4U}) {
                for (const std::size_t batch :
                     {std::size_t{1}, std::size_t{7}, std::size_t{64}, ids.size()}) {
                    if (level == "ref" && batch != 7) continue;
                    if (thin() && (threads == 4 || batch == 1 || batch == 64)) continue;
                    const auto got = all_logits(model, level, threads, batch, ids);
                    BOOST_TEST((want.size() == got.size() &&
                                std::memcmp(want.data(), got.data(), want.size() * 4) == 0),
                               codec(type).name << " " << level << " threads " << threads
                                                << " batch " << batch);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_search_for_a_scale_has_the_codecs_bits_on_every_level) {
    const std::uint64_t rows = thin() ? 8 : 200, cols = 320;
    std::vector<float> x(rows * cols);
    std::mt19937 engine(5);
    std::normal_distribution<float> normal;
    // From denormal to nearly infinite groups, as the codec takes them; ties and zeros among them.
    for (std::size_t i = 0; i < x.size(); ++i) {
        const int power = static_cast<int>(i / 32 % 25) * 10 - 135;
        x[i] = std::ldexp(normal(engine), power) * (i % 7 != 0 ? 1.0f : 0.0f);
        if (i / 320 % 5 == 0) x[i] = std::copysign(1.0f, x[i]);
    }
    for (const WeightType type : {WeightType::q4, WeightType::q4_0}) {
        const Codec& to = codec(type);
        const auto encoded = [&](Q4Search search) {
            const std::size_t data = to.data_row_bytes(cols), scales = to.scale_row_bytes(cols);
            std::vector<std::byte> bytes(rows * (data + scales));
            to.encode(x.data(), rows, cols, {true, search}, bytes.data(), &bytes[rows * data]);
            return bytes;
        };
        for (const std::string& level : kernels::usable_levels())
            BOOST_TEST((encoded(kernels::find(level)->fit_q4) == encoded(nullptr)), level);
    }
}

BOOST_AUTO_TEST_CASE(smaller_caches_do_not_either_and_lose_little) {
    const TempFolder folder;
    const Model model = random_model(folder, odd_config(), WeightType::q8);
    const auto ids = some_tokens(thin() ? 20 : 150, model.config().vocab);
    const auto exact = all_logits(model, "ref", 1, 7, ids);
    double last = 0;
    for (const CacheType cache : {CacheType::f16, CacheType::q8}) {
        const auto want = all_logits(model, "ref", 1, 7, ids, cache);
        for (const std::string& level : kernels::usable_levels()) {
            // Three threads for two key/value heads: one token's blocks are shared.
            for (const auto& [threads, batch] :
                 {std::pair{1U, ids.size()}, {2U, std::size_t{64}}, {3U, std::size_t{1}}}) {
                const auto got = all_logits(model, level, threads, batch, ids, cache);
                BOOST_TEST((want.size() == got.size() &&
                            std::memcmp(want.data(), got.data(), want.size() * 4) == 0),
                           level << " threads " << threads << " batch " << batch);
            }
        }
        double loss = 0, size = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            loss += (want[i] - exact[i]) * (want[i] - exact[i]);
            size += exact[i] * exact[i];
        }
        BOOST_TEST(loss > last); // fewer bits lose more
        BOOST_TEST(loss < 1e-3 * size);
        last = loss;
    }
}

BOOST_AUTO_TEST_CASE(threads_may_share_the_blocks_of_a_long_text) {
    const TempFolder folder;
    ModelConfig config = odd_config();
    config.layers = 1;
    config.width = 256;
    config.heads = 4;
    config.kv_heads = 2;
    config.head_dim = 64;
    config.ffn = 64;
    config.context = 700;
    const Model model = random_model(folder, config, WeightType::q8);
    const auto ids = some_tokens(650, config.vocab);
    std::vector<float> want;
    for (const unsigned threads : {1U, 2U, 3U, 5U}) { // 3 and 5 do not divide two heads
        Parallel parallel(threads);
        Session session = must(Session::create(model, kernels::best(), parallel));
        must(session.forward({ids.data(), 640}));
        std::vector<float> got;
        for (std::size_t i = 640; i < ids.size(); ++i) {
            const auto logits = must(session.forward({&ids[i], 1}));
            got.insert(got.end(), logits.begin(), logits.end());
        }
        if (want.empty()) want = got;
        BOOST_TEST(std::memcmp(want.data(), got.data(), want.size() * 4) == 0, threads);
    }
}

BOOST_AUTO_TEST_SUITE_END()
