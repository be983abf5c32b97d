// SPDX-License-Identifier: MIT
// Where the fixtures lie: the environment says (tests/meson.build sets it).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace mnm::tests {

inline std::string environment(const char* name, const char* fallback) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : fallback;
}
inline std::string fixtures_root() {
    return environment("MNM_FIXTURES", "../shared/fixtures");
}
inline bool have_fixtures() {
    return std::filesystem::exists(fixtures_root() + "/tales/reference.json");
}
inline std::string tales(const std::string& file) {
    return fixtures_root() + "/tales/" + file;
}
inline std::string source_root() {
    return environment("MNM_SOURCE_ROOT", ".");
}

} // namespace mnm::tests
