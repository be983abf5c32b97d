// SPDX-License-Identifier: MIT
// The main() of every Boost.Test program. A program whose name ends in "_fixture" needs the
// fixtures that lie outside the repository and is reported as skipped (exit 77) where they are
// missing.
#define BOOST_TEST_ALTERNATIVE_INIT_API
#define BOOST_TEST_NO_MAIN
#include <boost/test/included/unit_test.hpp>

#include "tests/fixtures.h"

#include <cstdio>
#include <string_view>

namespace {
bool init() {
    return true;
}
} // namespace

int main(int argc, char** argv) {
    std::string_view name = argv[0];
    if (name.ends_with(".exe")) name.remove_suffix(4);
    if (name.ends_with("_fixture") && !mnm::tests::have_fixtures()) {
        std::fprintf(stderr, "skipped: no fixtures at %s\n", mnm::tests::fixtures_root().c_str());
        return 77;
    }
    return boost::unit_test::unit_test_main(init, argc, argv);
}
