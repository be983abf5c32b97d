// SPDX-License-Identifier: MIT
// The main() of every Boost.Test program. A suite whose name ends in "_fixture_test" needs the
// fixtures that lie outside the repository: where they are missing, a run of it alone is reported
// as skipped (exit 77), and a run of everything leaves it out.
#define BOOST_TEST_ALTERNATIVE_INIT_API
#define BOOST_TEST_NO_MAIN
#include <boost/test/included/unit_test.hpp>

#include "tests/fixtures.h"

#include <cstdio>
#include <string_view>

namespace {

using namespace boost::unit_test;

bool needs_fixtures(std::string_view name) {
    return name.ends_with("_fixture_test") && !mnm::tests::have_fixtures();
}

struct LeaveOut : test_tree_visitor {
    bool test_suite_start(const test_suite& suite) override {
        if (needs_fixtures(suite.p_name.get()))
            framework::get<test_suite>(suite.p_id).p_default_status.value = test_unit::RS_DISABLED;
        return true;
    }
};

bool init() {
    LeaveOut leave_out;
    traverse_test_tree(framework::master_test_suite(), leave_out, true);
    return true;
}

} // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (!needs_fixtures(argv[i])) continue;
        std::fprintf(stderr, "skipped: no fixtures at %s\n", mnm::tests::fixtures_root().c_str());
        return 77;
    }
    return unit_test_main(init, argc, argv);
}
