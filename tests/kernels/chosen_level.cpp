// SPDX-License-Identifier: MIT
// The level named by MNM_KERNEL; a run for a level this processor lacks exits 77.
#include "tests/kernels/level_under_test.h"

#include "kernels/kernels.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <cstdlib>

namespace mnm::tests {

const kernels::Kernels& reference() {
    return *kernels::find("ref");
}
const kernels::Kernels& level_under_test() {
    return *kernels::find(environment("MNM_KERNEL", kernels::best().level));
}

namespace {

struct SkipUnusable {
    SkipUnusable() {
        const std::string level = environment("MNM_KERNEL", kernels::best().level);
        if (kernels::find(level) == nullptr) {
            std::fprintf(stderr, "skipped: this processor has no %s\n", level.c_str());
            std::exit(77);
        }
    }
};
BOOST_TEST_GLOBAL_FIXTURE(SkipUnusable);

} // namespace
} // namespace mnm::tests
