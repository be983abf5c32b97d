// SPDX-License-Identifier: MIT
// What quantize and gguf say about the file they wrote.
#include "cli/conversion_report.h"

#include "cli/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>

namespace mnm::cli {
namespace {

/// "blk.3.attn_norm.weight" as "blk.*.attn_norm.weight", so that the layers are listed as one.
std::string without_layer(const std::string& name) {
    if (!name.starts_with("blk.")) return name;
    const std::size_t end = name.find_first_not_of("0123456789", 4);
    return end == std::string::npos ? name : "blk.*" + name.substr(end);
}

} // namespace

std::string conversion_text(const std::string& path, std::string_view asked,
                            const ConvertReport& report) {
    std::string text = fmt::format("{}: {} parameters as {}: {:.4g} bits per weight nominal, "
                                   "{:.3f} real; {} bytes in {:.2f} s\n",
                                   path, grouped(report.parameters), asked, report.nominal_bits,
                                   report.bits_per_weight, grouped(report.bytes), report.seconds);
    std::map<std::pair<std::string, std::string>, int> others;
    for (const ConvertedTensor& tensor : report.tensors)
        if (tensor.type != asked) ++others[{tensor.type, without_layer(tensor.name)}];
    for (const auto& [key, count] : others)
        text += fmt::format("  stored as {}: {}{}\n", key.first, key.second,
                            count > 1 ? fmt::format(" ({} tensors)", count) : "");
    return text;
}

nlohmann::ordered_json conversion_json(const std::string& path, std::string_view format,
                                       std::string_view asked, const ConvertReport& report) {
    nlohmann::ordered_json json = {
        {"file", path},
        {"format", format},
        {"type", asked},
        {"parameters", report.parameters},
        {"nominal_bits", report.nominal_bits},
        {"bits_per_weight", report.bits_per_weight},
        {"bytes", report.bytes},
        {"seconds", report.seconds},
        {"tensors", nlohmann::ordered_json::array()},
    };
    for (const ConvertedTensor& tensor : report.tensors) {
        json["tensors"].push_back({{"name", tensor.name},
                                   {"type", tensor.type},
                                   {"rows", tensor.rows},
                                   {"cols", tensor.cols},
                                   {"bytes", tensor.bytes}});
    }
    return json;
}

} // namespace mnm::cli
