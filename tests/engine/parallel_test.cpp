// SPDX-License-Identifier: MIT
// Ranges cover everything once, start at grains, and never share a worker.
#include "engine/parallel.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <stdexcept>
#include <vector>

using mnm::Parallel;

BOOST_AUTO_TEST_SUITE(parallel_test)

BOOST_AUTO_TEST_CASE(ranges_cover_everything_once) {
    for (const unsigned threads : {1U, 2U, 3U, 8U}) {
        Parallel parallel(threads);
        BOOST_TEST(parallel.threads() == threads);
        for (const std::size_t n : {0U, 1U, 15U, 16U, 17U, 100U, 1000U}) {
            std::vector<std::atomic<int>> seen(n), busy(threads);
            std::atomic<int> faults{0};
            parallel.enter([&] {
                parallel.for_ranges(n, 16,
                                    [&](std::size_t begin, std::size_t end, unsigned worker) {
                                        if (begin % 16 != 0 || end > n || worker >= threads)
                                            ++faults;
                                        if (busy[worker]++ != 0) ++faults;
                                        for (std::size_t i = begin; i < end; ++i)
                                            ++seen[i];
                                        --busy[worker];
                                    });
            });
            BOOST_TEST(faults == 0);
            for (const auto& count : seen)
                BOOST_TEST(count == 1);
        }
    }
}

// Whichever thread meets it: the caller sees it, nobody waits for ever, and the team goes on.
BOOST_AUTO_TEST_CASE(an_exception_reaches_the_caller) {
    for (const unsigned threads : {1U, 2U, 8U}) {
        Parallel parallel(threads);
        for (std::size_t bad = 0; bad < 64; ++bad) {
            std::atomic<std::size_t> seen{0};
            const auto body = [&](std::size_t begin, std::size_t end, unsigned) {
                for (std::size_t i = begin; i < end; ++i) {
                    if (i == bad) throw std::out_of_range("bad");
                    ++seen;
                }
            };
            BOOST_CHECK_THROW(parallel.enter([&] { parallel.for_ranges(64, 1, body); }),
                              std::out_of_range);
            BOOST_CHECK_THROW(parallel.enter([] { throw std::domain_error("outside"); }),
                              std::domain_error);
            seen = 0;
            parallel.for_ranges(bad, 1, body);
            BOOST_TEST(seen == bad);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
