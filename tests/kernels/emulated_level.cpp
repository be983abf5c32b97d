// SPDX-License-Identifier: MIT
// avx_vnni_int8 with its dot instruction emulated, on top of the reference.
#include "tests/kernels/level_under_test.h"

#include <boost/test/unit_test.hpp>

#include <cstdlib>

namespace mnm::kernels {
void install_ref(Kernels& table) noexcept;
void install_avx_vnni_int8(Kernels& table) noexcept;
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
        kernels::install_avx_vnni_int8(t);
        return t;
    }();
    return table;
}

namespace {

struct SkipWithoutAvx2 {
    SkipWithoutAvx2() {
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) std::exit(77);
    }
};
BOOST_TEST_GLOBAL_FIXTURE(SkipWithoutAvx2);

} // namespace
} // namespace mnm::tests
