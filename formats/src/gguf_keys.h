// SPDX-License-Identifier: MIT
// The key/value part of a GGUF file under construction.
#pragma once

#include "formats/gguf.h"
#include "formats/src/bytes.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace mnm {

/// A key that is there already is not added again, so a file never has one twice.
class GgufKeys {
  public:
    void add(std::string_view key, std::string_view text) {
        if (start(key, GgufType::string)) put(text);
    }
    void add(std::string_view key, std::uint32_t value) {
        if (start(key, GgufType::u32)) append(bytes_, value);
    }
    void add(std::string_view key, float value) {
        if (start(key, GgufType::f32)) append(bytes_, value);
    }
    void add_flag(std::string_view key, bool value) {
        if (start(key, GgufType::boolean)) append(bytes_, static_cast<std::uint8_t>(value));
    }
    void add(std::string_view key, const std::vector<std::string>& texts) {
        if (!start_array(key, GgufType::string, texts.size())) return;
        for (const std::string& text : texts)
            put(text);
    }
    void add(std::string_view key, const std::vector<std::int32_t>& values) {
        if (!start_array(key, GgufType::i32, values.size())) return;
        for (const std::int32_t value : values)
            append(bytes_, value);
    }

    std::uint64_t count() const { return seen_.size(); }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    bool start(std::string_view key, GgufType type) {
        if (!seen_.emplace(key).second) return false;
        put(key);
        append(bytes_, static_cast<std::uint32_t>(type));
        return true;
    }
    bool start_array(std::string_view key, GgufType type, std::uint64_t count) {
        if (!start(key, GgufType::array)) return false;
        append(bytes_, static_cast<std::uint32_t>(type));
        append(bytes_, count);
        return true;
    }
    void put(std::string_view text) {
        append(bytes_, std::uint64_t{text.size()});
        const std::span<const std::byte> bytes = as_bytes(text);
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }

    std::vector<std::byte> bytes_;
    std::unordered_set<std::string> seen_;
};

} // namespace mnm
