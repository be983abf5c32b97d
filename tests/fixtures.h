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
/// An emulated processor is a hundred times slower: MNM_THIN=1 asks for a part of what takes long.
inline bool thin() {
    return environment("MNM_THIN", "") == "1";
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
