// SPDX-License-Identifier: MIT
// Counting the fast physical cores this process may use, from the system's own description.
#include "engine/processors.h"

#include "engine/src/cgroup_quota.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#ifdef __linux__
#include <cerrno>
#include <sched.h>
#endif

namespace mnm {
namespace {

using CpuSet = std::set<unsigned>;

constexpr unsigned max_cpus = 1U << 16;

std::string first_line(const std::string& path) {
    std::string line;
    std::ifstream in(path);
    std::getline(in, line);
    return line;
}

std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
}

/// "0-3,8": the kernel's form of a set. Empty when it is anything else.
CpuSet parse_list(std::string_view text) {
    CpuSet cpus;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        const std::size_t dash = item.find('-');
        const auto first = number(item.substr(0, dash));
        const auto last = dash == item.npos ? first : number(item.substr(dash + 1));
        if (!first || !last || *first > *last || *last >= max_cpus) return {};
        for (unsigned cpu = *first; cpu <= *last; ++cpu)
            cpus.insert(cpu);
    }
    return cpus;
}

/// A recorded system says its affinity in /proc/self/status, the running one is asked.
CpuSet allowed_cpus(const std::string& root) {
    if (!root.empty()) {
        constexpr std::string_view key = "Cpus_allowed_list:";
        std::ifstream in(root + "/proc/self/status");
        for (std::string line; std::getline(in, line);) {
            if (!line.starts_with(key)) continue;
            const std::size_t value = line.find_first_not_of(" \t", key.size());
            return value == line.npos ? CpuSet() : parse_list(std::string_view(line).substr(value));
        }
        return {};
    }
    CpuSet cpus;
#ifdef __linux__
    for (unsigned room = 1024; room <= max_cpus; room *= 2) {
        cpu_set_t* const mask = CPU_ALLOC(room);
        if (mask == nullptr) break;
        const std::size_t bytes = CPU_ALLOC_SIZE(room);
        CPU_ZERO_S(bytes, mask);
        const bool known = sched_getaffinity(0, bytes, mask) == 0;
        const bool too_small = !known && errno == EINVAL;
        for (unsigned cpu = 0; known && cpu < room; ++cpu) {
            if (CPU_ISSET_S(cpu, bytes, mask)) cpus.insert(cpu);
        }
        CPU_FREE(mask);
        if (!too_small) break;
    }
#endif
    return cpus;
}

std::string cpu_folder(const std::string& root, unsigned cpu) {
    return root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

/// One allowed processor of each physical core: threads of a core share its arithmetic.
std::vector<unsigned> physical_cores(const std::string& root, const CpuSet& allowed) {
    std::vector<unsigned> cores;
    std::set<std::string> seen;
    for (const unsigned cpu : allowed) {
        const std::string folder = cpu_folder(root, cpu) + "/topology/";
        const CpuSet siblings = parse_list(first_line(folder + "thread_siblings_list"));
        const auto core = number(first_line(folder + "core_id"));
        const auto package = number(first_line(folder + "physical_package_id"));
        std::string name = "cpu " + std::to_string(cpu); // nothing known: a core of its own
        if (siblings.contains(cpu))
            name = "cpu " + std::to_string(*siblings.begin());
        else if (core && package)
            name = std::to_string(*package) + ":" + std::to_string(*core);
        if (seen.insert(name).second) cores.push_back(cpu);
    }
    return cores;
}

/// How many of the cores belong to the fast kind; all, when the system does not tell kinds apart.
std::size_t fast_cores(const std::string& root, const std::vector<unsigned>& cores) {
    // Intel's hybrid chips list the fast cores.
    const CpuSet listed = parse_list(first_line(root + "/sys/devices/cpu_core/cpus"));
    const auto fast = static_cast<std::size_t>(std::count_if(
        cores.begin(), cores.end(), [&](unsigned cpu) { return listed.contains(cpu); }));
    if (fast > 0) return fast;

    for (const char* file : {"/cpu_capacity", "/cpufreq/cpuinfo_max_freq"}) {
        std::vector<unsigned> speeds;
        for (const unsigned cpu : cores) {
            const auto speed = number(first_line(cpu_folder(root, cpu) + file));
            if (speed && *speed > 0) speeds.push_back(*speed);
        }
        if (speeds.size() != cores.size()) continue; // all or nothing
        // Kinds part at the widest gap. Cores of one kind differ too, by up to an eighth: the best
        // of them may clock higher.
        std::sort(speeds.begin(), speeds.end());
        double widest = 0.87;
        std::size_t slow = 0;
        for (std::size_t i = 1; i < speeds.size(); ++i) {
            const double ratio = static_cast<double>(speeds[i - 1]) / speeds[i];
            if (ratio < widest) widest = ratio, slow = i;
        }
        if (slow > 0) return speeds.size() - slow;
    }
    return cores.size();
}

Processors describe(std::size_t count, const char* reason) {
    const auto n = static_cast<unsigned>(count);
    return {n, std::to_string(n) + (n == 1 ? " processor (" : " processors (") + reason + ")"};
}

} // namespace

Processors usable_processors(const std::string& root) {
    const CpuSet allowed = allowed_cpus(root);
    std::size_t count = std::max<std::size_t>(allowed.size(), 1);
    const char* reason = "affinity";
    if (!allowed.empty()) {
        const std::vector<unsigned> cores = physical_cores(root, allowed);
        if (cores.size() < count) reason = "physical cores";
        count = cores.size();
        const std::size_t fast = fast_cores(root, cores);
        if (fast < count) reason = "fast cores";
        count = fast;
    } else {
        if (root.empty()) count = std::max(1U, std::thread::hardware_concurrency());
        reason = "affinity unknown";
    }
    const std::optional<unsigned> quota = cgroup_quota(root);
    if (quota && *quota < count) {
        count = *quota;
        reason = "cgroup quota";
    }
    return describe(count, reason);
}

} // namespace mnm
