// SPDX-License-Identifier: MIT
// The level MNM_EMULATED with its own instructions emulated, on top of the reference. What else it
// is made of, MNM_NEEDS says.
#include "tests/kernels/level_under_test.h"

#include <boost/test/unit_test.hpp>

#include <cstdlib>

namespace mnm::kernels {
void install_ref(Kernels& table) noexcept;
void MNM_EMULATED(Kernels& table) noexcept;
} // namespace mnm::kernels

namespace mnm::tests {

const kernels::Kernels& reference() {
    static const kernels::Kernels table = [] {
        kernels::Kernels t{};
        kernels::install_ref(t);
        return t;
    }();
    return table;
}

const kernels::Kernels& level_under_test() {
    static const kernels::Kernels table = [] {
        kernels::Kernels t = reference();
        kernels::MNM_EMULATED(t);
        return t;
    }();
    return table;
}

namespace {

struct SkipUnusable {
    SkipUnusable() {
        if (!__builtin_cpu_supports(MNM_NEEDS) || !__builtin_cpu_supports("fma")) std::exit(77);
    }
};
BOOST_TEST_GLOBAL_FIXTURE(SkipUnusable);

} // namespace
} // namespace mnm::tests
