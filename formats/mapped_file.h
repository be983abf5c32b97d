// SPDX-License-Identifier: MIT
// A whole file mapped read-only.
#pragma once

#include "formats/result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace mnm {

/// Pages come in as they are touched; nothing is copied. bytes() stays valid, at the same address,
/// for the life of the object, whatever happens to the name of the file. On Linux a file that
/// shrinks while it is mapped makes a read of the lost part fatal: replace files by renaming, as
/// AtomicFile does.
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

  private:
    MappedFile() = default;
    std::string path_;
    std::span<const std::byte> bytes_;
};

} // namespace mnm
