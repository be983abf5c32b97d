// SPDX-License-Identifier: MIT
// Bringing a mapped file near while something else is still being prepared.
#pragma once

#include "formats/mapped_file.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace mnm::cli {

/// Reads a byte of each page, on a thread of its own, so that the first token does not have to wait
/// for them one by one. Ends when all are there or the object goes.
class WarmUp {
  public:
    explicit WarmUp(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
        try {
            thread_ = std::thread([this] { touch(); });
        } catch (const std::system_error&) {
            // No thread to be had: the pages come when they are needed.
        }
    }
    ~WarmUp() {
        over_ = true;
        if (thread_.joinable()) thread_.join();
    }
    WarmUp(const WarmUp&) = delete;
    WarmUp& operator=(const WarmUp&) = delete;

  private:
    void touch() const {
        constexpr std::size_t page = 4096;
        const auto bytes = file_->bytes();
        for (std::size_t i = 0; i < bytes.size() && !over_.load(std::memory_order_relaxed);
             i += page) {
            static_cast<void>(*const_cast<const volatile std::byte*>(&bytes[i]));
        }
    }

    std::shared_ptr<const MappedFile> file_;
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

} // namespace mnm::cli
