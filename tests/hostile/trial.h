// SPDX-License-Identifier: MIT
// Thousands of damaged copies of one small good file: cut, flipped, with hostile counts. Each is
// read with its memory counted; what is accepted is used.
#pragma once

#include "tests/fixtures.h"
#include "tests/formats/damage.h"
#include "tests/hostile/allocations.h"

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mnm::tests {

class Trial {
  public:
    struct Count {
        std::size_t tried = 0;
        std::size_t refused = 0;
    };
    /// What must hold for a changed byte at some place: must it be refused, or accepted?
    enum class Must { either, be_refused, be_accepted };
    using Rule = std::function<Must(std::size_t at, const std::vector<std::byte>& bytes)>;

    /// `read` opens the file as far as its format checks it, weights included, and may hold
    /// `multiple` times the file's size; `use` computes with what was accepted and checks the
    /// result.
    Trial(std::string name, std::vector<std::byte> good, TryOpen read,
          std::function<void(const std::string& path)> use = nullptr, std::size_t multiple = 16)
        : name_(std::move(name)), good_(std::move(good)), read_(std::move(read)),
          use_(std::move(use)), multiple_(multiple), path_(folder_ / "damaged") {
        write_bytes(path_, good_);
        BOOST_REQUIRE_MESSAGE(!read_(path_), *read_(path_));
        if (use_) use_(path_);
    }
    /// Says what was tried, one line.
    ~Trial() {
        std::printf("%-14s %6zu bytes: cuts %zu of %zu refused, flips %zu of %zu, counts %zu of "
                    "%zu; at most %zu bytes held for a file of %zu\n",
                    name_.c_str(), good_.size(), cuts_.refused, cuts_.tried, flips_.refused,
                    flips_.tried, counts_.refused, counts_.tried, worst_, worst_size_);
        std::fflush(stdout);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    const std::vector<std::byte>& good() const { return good_; }
    Count flips() const { return flips_; }

    /// Lengths below the good one, every one or each `step`th; all must be refused, but for those
    /// that `whole` names.
    void cut(std::size_t step = 1, const std::function<bool(std::size_t)>& whole = nullptr) {
        write_bytes(path_, good_);
        for (std::size_t size = good_.size(); size-- > 0;) {
            if (size % (thin() ? step * 16 : step) != 0) continue;
            std::filesystem::resize_file(path_, size);
            const bool refused = attempt(cuts_, size);
            const bool fine = whole && whole(size);
            BOOST_REQUIRE_MESSAGE(refused != fine, name_ << " cut to " << size << " bytes");
        }
    }

    /// The bits of the bytes in [begin, end), every one or each `step`th; 9 takes one of every
    /// byte, each time another.
    void flip(std::size_t begin, std::size_t end, const Rule& rule, std::size_t step = 1) {
        std::vector<std::byte> bytes = good_;
        write_bytes(path_, bytes);
        std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
        const auto put = [&](std::size_t at) {
            file.seekp(static_cast<std::streamoff>(at));
            file.put(static_cast<char>(bytes[at]));
            file.flush();
            BOOST_REQUIRE(file.good());
        };
        for (std::size_t i = begin * 8; i < end * 8; i += thin() ? step * 17 : step) {
            const std::size_t at = i / 8, bit = i % 8;
            bytes[at] ^= static_cast<std::byte>(1u << bit);
            put(at);
            const bool refused = attempt(flips_, bytes.size());
            const Must must = rule(at, bytes);
            BOOST_REQUIRE_MESSAGE(must == Must::either || refused == (must == Must::be_refused),
                                  name_ << " with bit " << bit << " of byte " << at << " flipped");
            bytes[at] = good_[at];
            put(at);
        }
    }

    /// The field set to 0, 1, the largest number and others where products wrap.
    void hostile(std::size_t at, std::size_t width, const Rule& rule) {
        for (const std::uint64_t value :
             {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 31,
              std::uint64_t{1} << 32, std::uint64_t{1} << 42, (std::uint64_t{1} << 60) + 1,
              std::uint64_t{1} << 63, ~std::uint64_t{63}}) {
            std::vector<std::byte> bytes = good_;
            std::memcpy(bytes.data() + at, &value, width);
            if (bytes == good_) continue;
            const bool refused = whole(bytes);
            const Must must = rule(at, bytes);
            BOOST_REQUIRE_MESSAGE(must == Must::either || refused == (must == Must::be_refused),
                                  name_ << " with " << value << " at byte " << at);
        }
    }

    /// A copy that was damaged elsewhere; true when it is refused. Counts as one with a hostile
    /// count.
    bool whole(const std::vector<std::byte>& bytes) {
        write_bytes(path_, bytes);
        return attempt(counts_, bytes.size());
    }
    /// The same, counted as a flip.
    bool flipped(const std::vector<std::byte>& bytes) {
        write_bytes(path_, bytes);
        return attempt(flips_, bytes.size());
    }

  private:
    /// Fixed costs: the error's text and the tables that every tokenizer has.
    static constexpr std::size_t fixed = 64 << 10;

    bool attempt(Count& count, std::size_t size) {
        ++count.tried;
        const Allocations allocations;
        const auto refused = read_(path_);
        const std::size_t peak = allocations.peak();
        BOOST_REQUIRE_MESSAGE(peak <= fixed + multiple_ * size,
                              name_ << ": " << peak << " bytes held for a file of " << size);
        if (peak > worst_) {
            worst_ = peak;
            worst_size_ = size;
        }
        if (refused) {
            check_message(*refused, path_);
            ++count.refused;
        } else if (use_ && (used_++ % 16 == 0 || flips_.tried < 2000)) {
            use_(path_);
        }
        return refused.has_value();
    }

    std::string name_;
    std::vector<std::byte> good_;
    TryOpen read_;
    std::function<void(const std::string& path)> use_;
    std::size_t multiple_; ///< bytes held for each byte of the file
    TempFolder folder_;
    std::string path_;
    Count cuts_, flips_, counts_;
    std::size_t used_ = 0;
    std::size_t worst_ = 0, worst_size_ = 0;
};

} // namespace mnm::tests
