// SPDX-License-Identifier: MIT
// A whole file mapped read-only.
#pragma once

#include "formats/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mnm {

/// Pages come in as they are touched; nothing is copied. bytes() stays valid, at the same address,
/// for the life of the object, whatever happens to the name of the file. Windows lets nobody
/// shorten a mapped file; elsewhere a read of what was cut off raises SIGBUS, for which
/// mapped_path_at() finds the name. Replace files by renaming, as AtomicFile does.
class MappedFile {
  public:
    /// Errors: no such file, a directory, no permission, an empty file, not enough address space.
    static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::string& path() const { return path_; }
    std::span<const std::byte> bytes() const { return bytes_; }
    /// Asks the system to read [offset, offset + size) ahead, in order. Never fails.
    void prefetch(std::size_t offset, std::size_t size) const;
    /// The range will not be read again soon: its memory may serve others. It stays readable.
    void release(std::size_t offset, std::size_t size) const;
    /// Errors: the file itself (not its name) was written to or cut since it was opened, so that
    /// what was read may be a mixture. Notices size and time; on Windows always succeeds.
    Result<void> check_unchanged() const;

  private:
    MappedFile() = default;
    std::string path_;
    std::span<const std::byte> bytes_;
    std::intptr_t handle_ = -1;
    std::int64_t modified_[2] = {0, 0}; ///< seconds, nanoseconds
    int slot_ = -1;                     ///< among the ranges that mapped_path_at() knows
};

/// The path of the living MappedFile that holds the address, or null. Async-signal-safe; always
/// null on Windows.
const char* mapped_path_at(const void* address) noexcept;

} // namespace mnm
