// SPDX-License-Identifier: MIT
// Writing a file so that its name always holds either the old content or the whole new one.
#pragma once

#include "formats/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mnm {

/// Writes to a temporary file beside the target; commit() flushes it to the disk and renames it. An
/// object destroyed before commit() removes the temporary file and leaves the target as it was.
/// A target that exists and is no regular file (/dev/null, a pipe) is written directly.
class AtomicFile {
  public:
    /// Errors: the folder is missing or not writable, the target is a directory.
    static Result<AtomicFile> create(const std::string& path);
    AtomicFile(AtomicFile&& other) noexcept;
    AtomicFile& operator=(AtomicFile&&) = delete;
    ~AtomicFile();

    /// Appends; errors name the path and the system's reason (no space left, ...), which may show
    /// at a later call: bytes go to the system 2 MiB at a time, each at a multiple of 2 MiB. A file
    /// system that keeps such pieces whole lets MappedFile map them as huge pages.
    Result<void> write(std::span<const std::byte> bytes);
    Result<void> write_zeros(std::uint64_t count);
    /// Bytes appended so far.
    std::uint64_t size() const { return size_; }
    const std::string& path() const { return path_; }
    /// Where the bytes are until commit(), for reading them back; equals path() for special files.
    const std::string& temporary_path() const { return temporary_; }
    /// Hands everything to the operating system, without renaming yet; for reading back.
    Result<void> flush();
    Result<void> commit();

  private:
    AtomicFile() = default;
    /// To the system, all of it.
    Result<void> write_through(std::span<const std::byte> bytes);

    std::string path_;
    std::string temporary_;
    std::string target_; ///< what is renamed over: path_ with its links followed
    std::intptr_t handle_ = -1;
    int slot_ = -1; ///< among the names that remove_unfinished_files() knows
    std::uint64_t size_ = 0;
    std::uint64_t written_ = 0;        ///< by the system
    std::vector<std::byte> collected_; ///< what follows; less than a piece
};

/// Removes the temporary file of every AtomicFile that lives now. For a handler of SIGINT or
/// SIGTERM that ends the process next: it calls nothing that is not async-signal-safe.
void remove_unfinished_files() noexcept;

/// True when both names lead to the same file (links followed). False when either does not exist.
bool same_file(const std::string& a, const std::string& b);

} // namespace mnm
