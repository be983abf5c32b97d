// SPDX-License-Identifier: MIT
// Tests of counting processors, on systems recorded as trees of files.
#include "engine/processors.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

using namespace mnm;

BOOST_AUTO_TEST_SUITE(processors_test)

#ifdef _WIN32
BOOST_AUTO_TEST_CASE(this_system_has_a_processor) {
    BOOST_TEST(usable_processors().count >= 1U);
}
#else

namespace {

/// A folder that stands for the root of a system.
class System {
  public:
    System() {
        std::random_device random;
        root_ = std::filesystem::temp_directory_path() /
                ("mnm_processors_" + std::to_string(random()) + std::to_string(random()));
    }
    ~System() { std::filesystem::remove_all(root_); }
    System(const System&) = delete;
    System& operator=(const System&) = delete;

    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text << '\n';
    }
    void allow(const std::string& list) {
        write("proc/self/status", "Name:\tmnm\nCpus_allowed:\tff\nCpus_allowed_list:\t" + list);
    }
    void write_cpu(unsigned cpu, const std::string& file, const std::string& text) {
        write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file, text);
    }
    void write_core(unsigned cpu, unsigned core, const std::string& siblings) {
        write_cpu(cpu, "topology/core_id", std::to_string(core));
        write_cpu(cpu, "topology/physical_package_id", "0");
        if (!siblings.empty()) write_cpu(cpu, "topology/thread_siblings_list", siblings);
    }
    Processors usable() const { return usable_processors(root_.string()); }

  private:
    std::filesystem::path root_;
};

/// 8 fast cores and 12 slow ones, one thread each.
void eight_fast_twelve_slow(System& system) {
    system.allow("0-19");
    for (unsigned cpu = 0; cpu < 20; ++cpu)
        system.write_core(cpu, cpu, std::to_string(cpu));
}

void check(const System& system, unsigned count, const std::string& reason) {
    const Processors found = system.usable();
    BOOST_TEST(found.count == count);
    BOOST_TEST(found.reason.find(reason) != std::string::npos,
               "reason \"" << found.reason << "\" lacks \"" << reason << '"');
}

} // namespace

BOOST_AUTO_TEST_CASE(this_system_has_a_processor) {
    const Processors found = usable_processors();
    BOOST_TEST(found.count >= 1U);
    BOOST_TEST(found.reason.starts_with(std::to_string(found.count) + " processor"));
}

BOOST_AUTO_TEST_CASE(the_affinity_mask) {
    System system;
    system.allow("0,2-3,40");
    check(system, 4, "4 processors (affinity)");
    system.allow("7");
    check(system, 1, "1 processor (affinity)");
}

BOOST_AUTO_TEST_CASE(threads_of_a_core_count_once) {
    System system;
    system.allow("0-3"); // 2 cores, 4 threads: 0 and 2, 1 and 3
    for (unsigned cpu = 0; cpu < 4; ++cpu) {
        system.write_core(cpu, cpu % 2,
                          std::to_string(cpu % 2) + "," + std::to_string(cpu % 2 + 2));
    }
    check(system, 2, "physical cores");
    system.allow("2,3"); // one thread of each
    check(system, 2, "affinity");
    system.allow("0,2"); // both threads of one
    check(system, 1, "physical cores");
}

BOOST_AUTO_TEST_CASE(core_numbers_do_where_siblings_are_not_told) {
    System system;
    system.allow("0-3");
    for (unsigned cpu = 0; cpu < 4; ++cpu)
        system.write_core(cpu, cpu / 2, "");
    check(system, 2, "physical cores");
    system.write_cpu(3, "topology/physical_package_id", "1"); // core 1 of another package
    check(system, 3, "physical cores");
    system.write_cpu(0, "topology/core_id", "none"); // malformed: a core of its own
    check(system, 4, "affinity");
}

BOOST_AUTO_TEST_CASE(fast_cores_by_intel_s_list) {
    System system;
    eight_fast_twelve_slow(system);
    system.write("sys/devices/cpu_core/cpus", "0-7");
    system.write("sys/devices/cpu_atom/cpus", "8-19");
    check(system, 8, "fast cores");
    system.allow("8-11"); // only slow ones allowed
    check(system, 4, "affinity");
}

BOOST_AUTO_TEST_CASE(fast_cores_by_capacity) {
    System system;
    eight_fast_twelve_slow(system);
    for (unsigned cpu = 0; cpu < 20; ++cpu) {
        system.write_cpu(cpu, "cpu_capacity", cpu < 8 ? "1024" : "676");
    }
    check(system, 8, "fast cores");
}

BOOST_AUTO_TEST_CASE(fast_cores_by_clock) {
    System system;
    eight_fast_twelve_slow(system);
    for (unsigned cpu = 0; cpu < 20; ++cpu) { // two of the fast cores clock a little higher
        system.write_cpu(cpu, "cpufreq/cpuinfo_max_freq",
                         cpu < 2   ? "5500000"
                         : cpu < 8 ? "5400000"
                                   : "4600000");
    }
    check(system, 8, "fast cores");
    system.write_cpu(3, "cpufreq/cpuinfo_max_freq", "fast"); // not told for all: not told
    check(system, 20, "affinity");
}

BOOST_AUTO_TEST_CASE(cores_that_differ_a_little_are_of_one_kind) {
    System system;
    system.allow("0-3");
    for (unsigned cpu = 0; cpu < 4; ++cpu) {
        system.write_cpu(cpu, "cpufreq/cpuinfo_max_freq", cpu == 0 ? "5700000" : "5300000");
    }
    check(system, 4, "affinity");
}

BOOST_AUTO_TEST_CASE(one_best_core_three_good_and_four_small_ones) {
    System system;
    system.allow("0-7");
    for (unsigned cpu = 0; cpu < 8; ++cpu) {
        system.write_cpu(cpu, "cpu_capacity", cpu < 4 ? "325" : cpu < 7 ? "800" : "1024");
    }
    check(system, 4, "fast cores");
}

BOOST_AUTO_TEST_CASE(quota_of_version_2_is_rounded_up) {
    System system;
    system.allow("0-7");
    system.write("proc/self/cgroup", "0::/user/app");
    system.write("sys/fs/cgroup/user/app/cpu.max", "250000 100000");
    check(system, 3, "3 processors (cgroup quota)");
    system.write("sys/fs/cgroup/user/app/cpu.max", "1000 100000");
    check(system, 1, "1 processor (cgroup quota)");
    system.write("sys/fs/cgroup/user/app/cpu.max", "max 100000");
    check(system, 8, "affinity");
    system.write("sys/fs/cgroup/user/cpu.max", "200000 100000"); // of a group above
    check(system, 2, "cgroup quota");
    system.write("sys/fs/cgroup/user/app/cpu.max", "9900000 100000"); // more than there is
    system.write("sys/fs/cgroup/user/cpu.max", "max 100000");
    check(system, 8, "affinity");
}

BOOST_AUTO_TEST_CASE(a_quota_where_the_mount_says) {
    System system;
    system.allow("0-7");
    system.write("proc/self/mountinfo",
                 "30 22 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                 "40 30 0:37 /docker/abc /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw");
    system.write("proc/self/cgroup",
                 "0::/docker/abc/inner"); // the mount shows /docker/abc and below
    system.write("sys/fs/cgroup/unified/inner/cpu.max", "500000 100000");
    check(system, 5, "cgroup quota");
    system.write("sys/fs/cgroup/unified/cpu.max", "400000 100000");
    check(system, 4, "cgroup quota");
    system.write("proc/self/cgroup", "0::/../other"); // outside of what is seen here
    check(system, 4, "cgroup quota");
}

BOOST_AUTO_TEST_CASE(quota_of_version_1) {
    System system;
    system.allow("0-7");
    system.write("proc/self/mountinfo",
                 "31 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                 "32 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct");
    system.write("proc/self/cgroup", "9:cpuset:/\n4:cpu,cpuacct:/job/1\n0::/");
    system.write("sys/fs/cgroup/cpu,cpuacct/job/1/cpu.cfs_quota_us", "150000");
    system.write("sys/fs/cgroup/cpu,cpuacct/job/1/cpu.cfs_period_us", "100000");
    check(system, 2, "cgroup quota");
    system.write("sys/fs/cgroup/cpu,cpuacct/job/1/cpu.cfs_quota_us", "-1");
    check(system, 8, "affinity");
    system.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000");
    system.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "50000");
    check(system, 2, "cgroup quota");
}

BOOST_AUTO_TEST_CASE(malformed_files_are_ignored) {
    System system;
    check(system, 1, "unknown"); // an empty system
    for (const char* list : {"", "x", "3-1", "0-99999999", "1,,2", "-3", "0-"}) {
        system.allow(list);
        check(system, 1, "unknown");
    }
    system.allow("0-3");
    for (const char* group : {"", "0", "0:", "0::", "garbage"}) {
        system.write("proc/self/cgroup", group);
        check(system, 4, "affinity");
    }
    system.write("proc/self/cgroup", "0::/a");
    for (const char* max : {"", "max", "0 100000", "100000 0", "-5 100000", "100000", "1e5 100000",
                            "100000 100000 1", "99999999999999999999 100000"}) {
        system.write("sys/fs/cgroup/a/cpu.max", max);
        check(system, 4, "affinity");
    }
    system.write("proc/self/mountinfo", "1 2 3 - cgroup2\n\n- - -\ncgroup2 cgroup2");
    system.write("sys/fs/cgroup/a/cpu.max", "100000 100000");
    check(system, 1, "cgroup quota");
}
#endif

BOOST_AUTO_TEST_SUITE_END()
