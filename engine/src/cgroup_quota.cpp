// SPDX-License-Identifier: MIT
// Finding this process's control groups in /proc and reading what CPU time they grant.
#include "engine/src/cgroup_quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace mnm {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

bool lists(const std::string& comma_separated, std::string_view name) {
    const std::vector<std::string> parts = split(comma_separated, ',');
    return std::find(parts.begin(), parts.end(), name) != parts.end();
}

std::vector<std::string> lines(const std::string& path) {
    std::vector<std::string> found;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);)
        found.push_back(line);
    return found;
}

/// A positive number and nothing else.
std::optional<std::uint64_t> positive(const std::string& text) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value == 0) return std::nullopt;
    return value;
}

/// Where a hierarchy is mounted, and which of its groups is seen there.
struct Mount {
    std::string point;
    std::string group;
};

/// A line of mountinfo: id parent device root point options [tags...] - type source super_options.
std::optional<Mount> find_mount(const std::string& root, bool version_2) {
    for (const std::string& line : lines(root + "/proc/self/mountinfo")) {
        const std::vector<std::string> field = split(line, ' ');
        const auto dash = std::find(field.begin(), field.end(), "-");
        if (dash - field.begin() < 6 || field.end() - dash < 4) continue;
        const bool match =
            version_2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && lists(dash[3], "cpu");
        if (match) return Mount{field[4], field[3]};
    }
    return std::nullopt;
}

/// A line of /proc/self/cgroup: hierarchy, controllers, group. Version 2 is hierarchy 0, unnamed.
std::optional<std::string> own_group(const std::string& root, bool version_2) {
    for (const std::string& line : lines(root + "/proc/self/cgroup")) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const bool match = version_2 ? line.substr(0, first) == "0" && controllers.empty()
                                     : lists(controllers, "cpu");
        if (match) return line.substr(second + 1);
    }
    return std::nullopt;
}

/// "max 100000" or "150000 100000".
std::optional<std::uint64_t> quota_2(const std::string& folder) {
    const std::vector<std::string> line = lines(folder + "/cpu.max");
    if (line.empty()) return std::nullopt;
    const std::vector<std::string> field = split(line[0], ' ');
    if (field.size() != 2) return std::nullopt;
    const auto quota = positive(field[0]);
    const auto period = positive(field[1]);
    if (!quota || !period) return std::nullopt;
    return (*quota - 1) / *period + 1;
}

/// A quota of -1 means none.
std::optional<std::uint64_t> quota_1(const std::string& folder) {
    const std::vector<std::string> quota_line = lines(folder + "/cpu.cfs_quota_us");
    const std::vector<std::string> period_line = lines(folder + "/cpu.cfs_period_us");
    if (quota_line.empty() || period_line.empty()) return std::nullopt;
    const auto quota = positive(quota_line[0]);
    const auto period = positive(period_line[0]);
    if (!quota || !period) return std::nullopt;
    return (*quota - 1) / *period + 1;
}

/// The group's path below the mount point. A group outside what is mounted (another namespace) is
/// taken for the mounted one.
std::string below(const Mount& mount, std::string group) {
    if (mount.group != "/") {
        const std::size_t n = mount.group.size();
        const bool inside =
            group.starts_with(mount.group) && (group.size() == n || group[n] == '/');
        group = inside ? group.substr(n) : "";
    }
    if (("/" + group + "/").find("/../") != std::string::npos) group.clear();
    while (group.ends_with('/'))
        group.pop_back();
    return group;
}

} // namespace

std::optional<unsigned> cgroup_quota(const std::string& root) {
    std::optional<std::uint64_t> least;
    for (const bool version_2 : {true, false}) {
        std::optional<Mount> mount = find_mount(root, version_2);
        const std::optional<std::string> group = own_group(root, version_2);
        if (!group) continue;
        if (!mount) mount = Mount{version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", "/"};
        const std::string top = root + mount->point;
        for (std::string path = below(*mount, *group);; path.resize(path.rfind('/'))) {
            const auto quota = version_2 ? quota_2(top + path) : quota_1(top + path);
            if (quota && (!least || *quota < *least)) least = quota;
            if (path.find('/') == path.npos) break;
        }
    }
    if (!least) return std::nullopt;
    return static_cast<unsigned>(std::min<std::uint64_t>(*least, 1U << 20));
}

} // namespace mnm
