// SPDX-License-Identifier: MIT
// The same logits to the bit: every usable level, thread count and batch split.
#include "tests/engine/models.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <cstring>

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

BOOST_AUTO_TEST_SUITE_END()
