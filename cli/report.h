// SPDX-License-Identifier: MIT
// What the program says: results on standard output, notes and errors on standard error.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace mnm::cli {

/// Results. A reader that went away (a closed pipe) ends the program quietly with status 0; any
/// other write error ends it with a message and status 1. A terminal gets no control characters,
/// which names, files and models may hold.
void print(std::string_view text);
/// One object, valid JSON even where a string holds invalid UTF-8.
void print_json(const nlohmann::ordered_json& object);
/// The same on one line, for output of many objects.
void print_json_line(const nlohmann::ordered_json& object);
/// Hands everything printed to the system; ends the program as print() does when that fails.
void flush_output();

/// A remark on standard error, one line.
void note(std::string_view text);
/// "mnm: error: ...", one line on standard error whatever the message holds.
void print_error(std::string_view message);

/// The text with U+FFFD for what is not UTF-8, as a file name may hold.
std::string valid_utf8(std::string_view text);
/// "1 row", "2 rows".
std::string counted(std::uint64_t number, std::string_view noun);
/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);
/// The text as a JSON string: quoted, one line, whatever bytes it has.
std::string json_string(std::string_view text);

} // namespace mnm::cli
