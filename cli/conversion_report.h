// SPDX-License-Identifier: MIT
// What quantize and gguf say about the file they wrote.
#pragma once

#include "engine/convert.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace mnm::cli {

/// `asked` is the type that was asked for; tensors that got another one are listed.
std::string conversion_text(const std::string& path, std::string_view asked,
                            const ConvertReport& report);
nlohmann::ordered_json conversion_json(const std::string& path, std::string_view format,
                                       std::string_view asked, const ConvertReport& report);

} // namespace mnm::cli
