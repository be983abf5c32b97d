// SPDX-License-Identifier: MIT
// What the program says.
#include "cli/report.h"

#include "cli/terminal.h"
#include "engine/conversation.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mnm::cli {
namespace {

void check_output(bool written) {
    if (written) return;
    const int reason = errno;
    if (reader_left(reason)) std::_Exit(0);
    print_error(std::string("standard output: ") + std::strerror(reason));
    std::_Exit(1);
}

std::string one_line(std::string_view text) {
    std::string line = without_controls(text);
    for (char& c : line)
        if (c == '\n' || c == '\t') c = ' ';
    return line + "\n";
}

constexpr auto replace = nlohmann::ordered_json::error_handler_t::replace;

} // namespace

void print(std::string_view text) {
    std::string clean;
    if (is_terminal(Stream::output)) text = clean = without_controls(text);
    check_output(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void print_json(const nlohmann::ordered_json& object) {
    print(object.dump(2, ' ', false, replace) + "\n");
}

void print_json_line(const nlohmann::ordered_json& object) {
    print(object.dump(-1, ' ', false, replace) + "\n");
}

void flush_output() {
    check_output(std::fflush(stdout) == 0);
}

void note(std::string_view text) {
    std::fputs(one_line(text).c_str(), stderr);
}

void print_error(std::string_view message) {
    std::fputs(("mnm: error: " + one_line(message)).c_str(), stderr);
}

std::string valid_utf8(std::string_view text) {
    Utf8Stream stream;
    std::string valid = stream.push(text);
    return valid + stream.finish();
}

std::string counted(std::uint64_t number, std::string_view noun) {
    std::string text = grouped(number) + ' ' + std::string(noun);
    return number == 1 ? text : text + 's';
}

std::string grouped(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t i = digits.size(); i > 3; i -= 3)
        digits.insert(i - 3, 1, ',');
    return digits;
}

std::string json_string(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mnm::cli
