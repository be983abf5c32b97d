// SPDX-License-Identifier: MIT
// The sections of a study's page, in their order there. Each is HTML of its own.
#pragma once

#include "cli/study.h"

#include <string>

namespace mnm::cli {

std::string rate_section(const StudyResult& result);
std::string quantizer_section(const StudyResult& result);
std::string activation_section(const StudyResult& result);
std::string stale_section(const StudyResult& result);
std::string memory_section(const StudyResult& result);
std::string sensitivity_section(const StudyResult& result);

/// <section> with a heading.
std::string section(const std::string& id, const std::string& title, const std::string& body);
/// <p> of a text that is escaped.
std::string paragraph(const std::string& text);

} // namespace mnm::cli
