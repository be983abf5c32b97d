// SPDX-License-Identifier: MIT
// The registry of levels.
#include "kernels/kernels.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

BOOST_AUTO_TEST_SUITE(levels)

BOOST_AUTO_TEST_CASE(the_forced_level_is_the_one_used) {
    const std::string level = mnm::tests::environment("MNM_KERNEL", "ref");
    const mnm::kernels::Kernels* table = mnm::kernels::find(level);
    BOOST_REQUIRE(table != nullptr);
    BOOST_TEST(table->level == level);
}

BOOST_AUTO_TEST_CASE(every_entry_of_every_table_is_filled) {
    for (const std::string& level : mnm::kernels::usable_levels()) {
        const auto& t = *mnm::kernels::find(level);
        BOOST_TEST((t.quantize && t.matmul_f32 && t.matmul_q8 && t.matmul_q4 && t.rmsnorm &&
                    t.rope && t.swiglu && t.cache_put && t.attend && t.attend_merge &&
                    t.attend_finish && t.softmax && t.exp && t.argmax && t.sum_words && t.dot_loop),
                   level);
    }
}

BOOST_AUTO_TEST_CASE(unknown_levels_are_not_found_and_usable_ones_are_built) {
    BOOST_TEST(mnm::kernels::find("avx1024") == nullptr);
    BOOST_TEST(mnm::kernels::find("") == nullptr);
    const auto built = mnm::kernels::built_levels();
    const auto usable = mnm::kernels::usable_levels();
    BOOST_TEST(usable.front() == "ref");
    for (const std::string& level : usable) {
        BOOST_TEST((std::find(built.begin(), built.end(), level) != built.end()));
    }
    BOOST_TEST(mnm::kernels::best().level == usable.back());
}

BOOST_AUTO_TEST_SUITE_END()
