// SPDX-License-Identifier: MIT
// GGUF files built by hand, and what the reader says about them.
#pragma once

#include "tests/formats/damage.h"

#include "formats/gguf.h"
#include "formats/src/bytes.h"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mnm::tests {

inline Result<GgufFile> read_gguf_file(const std::string& path) {
    MNM_TRY(auto mapping, MappedFile::open(path));
    return read_gguf(mapping);
}

inline std::optional<std::string> outcome_of_gguf(const std::string& path) {
    const auto file = read_gguf_file(path);
    return file ? std::nullopt : std::optional(file.error().message);
}

inline std::string outcome_of(const std::vector<std::byte>& bytes) {
    const TempFolder folder;
    write_bytes(folder / "x.gguf", bytes);
    const auto began = std::chrono::steady_clock::now();
    const auto refused = outcome_of_gguf(folder / "x.gguf");
    BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(2)));
    if (!refused) return {};
    check_message(*refused, folder / "x.gguf");
    return refused->substr((folder / "x.gguf").size() + 2);
}

inline bool contains(const std::string& text, std::string_view part) {
    BOOST_TEST_INFO(text);
    return text.find(part) != std::string::npos;
}

/// A GGUF file built by hand.
class Builder {
  public:
    template <class T>
    Builder& put(const T& value) {
        append(body_, value);
        return *this;
    }
    Builder& text(std::string_view s) {
        put(std::uint64_t{s.size()});
        append_fixed_text(body_, s, s.size());
        return *this;
    }
    Builder& key(std::string_view name, GgufType type) {
        ++keys_;
        return text(name).put(static_cast<std::uint32_t>(type));
    }
    Builder& number(std::string_view name, std::uint32_t value) {
        return key(name, GgufType::u32).put(value);
    }
    Builder& string(std::string_view name, std::string_view value) {
        return key(name, GgufType::string).text(value);
    }
    Builder& array(std::string_view name, GgufType type, std::uint64_t count) {
        return key(name, GgufType::array).put(static_cast<std::uint32_t>(type)).put(count);
    }
    Builder& tensor(std::string_view name, const std::vector<std::uint64_t>& ne,
                    std::uint64_t offset = 0, std::uint32_t type = 0) {
        ++tensors_;
        text(name).put(static_cast<std::uint32_t>(ne.size()));
        for (const std::uint64_t n : ne)
            put(n);
        return put(type).put(offset);
    }
    std::vector<std::byte> bytes(std::size_t data = 0, std::uint32_t version = 3) const {
        std::vector<std::byte> out;
        append_fixed_text(out, "GGUF", 4);
        append(out, version);
        append(out, tensors_);
        append(out, keys_);
        out.insert(out.end(), body_.begin(), body_.end());
        out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_ + data);
        return out;
    }
    Builder& align(std::size_t to) {
        alignment_ = to;
        return *this;
    }

  private:
    std::vector<std::byte> body_;
    std::uint64_t tensors_ = 0;
    std::uint64_t keys_ = 0;
    std::size_t alignment_ = 32;
};

} // namespace mnm::tests
