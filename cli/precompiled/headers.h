// SPDX-License-Identifier: MIT
// What most of the command line's sources include; compiled once.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
