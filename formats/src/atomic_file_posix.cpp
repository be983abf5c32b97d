// SPDX-License-Identifier: MIT
// AtomicFile on POSIX: O_EXCL, fsync, rename, fsync of the folder.
#include "formats/atomic_file.h"

#include "formats/src/unfinished.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mnm {

namespace {

UnfinishedNames<char> unfinished;
constexpr std::string_view prefix = ".mnm-", suffix = ".unfinished";

Error failure(const std::string& path, int code) {
    return Error{fmt::format("{}: {}", path, std::strerror(code))};
}

/// With what to do about a disk that is full, as far as that is known here.
Error write_failure(const std::string& path, int code, std::uint64_t written) {
    const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
    if (!full) return failure(path, code);
    return Error{
        fmt::format("{}: {} after {} bytes; make room or write elsewhere, nothing was kept", path,
                    std::strerror(code), written)};
}

/// The folder part, so that `folder + name` is a path in it.
std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

/// Follows links by hand: the last one may point to a file that is still to be made.
std::string follow_links(std::string path) {
    for (int depth = 0; depth < 40; ++depth) {
        std::error_code none;
        const std::filesystem::path to = std::filesystem::read_symlink(path, none);
        if (none) break;
        path = to.is_absolute() ? to.native() : folder_of(path) + to.native();
    }
    return path;
}

/// Tells apart the runs that share a folder; a stale name of an earlier process cannot match.
std::string unique_name() {
    static std::atomic<unsigned> count{0};
    std::random_device random;
    return fmt::format("{}{}-{}-{:08x}{}", prefix, ::getpid(), count++, random(), suffix);
}

int open_retrying(const std::string& path, int flags) {
    int handle;
    do
        handle = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    while (handle < 0 && errno == EINTR);
    return handle;
}

/// True when no living process writes the file: its lock is free, and was not taken a moment too
/// late. Where a file system locks between machines only in name, its age speaks for itself.
bool is_abandoned(const char* name, int folder) {
    constexpr std::time_t seconds = 600;
    const int handle = ::openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0) return false;
    struct stat status {};
    const bool abandoned = ::fstat(handle, &status) == 0 && S_ISREG(status.st_mode) &&
                           std::time(nullptr) - status.st_mtime > seconds &&
                           ::flock(handle, LOCK_EX | LOCK_NB) == 0;
    ::close(handle);
    return abandoned;
}

/// What runs that were killed left in the folder.
void remove_abandoned(const std::string& folder) {
    DIR* entries = ::opendir(folder.c_str());
    if (entries == nullptr) return;
    while (const dirent* entry = ::readdir(entries)) {
        const std::string_view name = entry->d_name;
        if (name.starts_with(prefix) && name.ends_with(suffix) &&
            is_abandoned(entry->d_name, ::dirfd(entries)))
            ::unlinkat(::dirfd(entries), entry->d_name, 0);
    }
    ::closedir(entries);
}

/// The lock says that the file is being written. False when another run has just removed it.
bool claim(int handle) {
    struct stat status {};
    if (::flock(handle, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return ::fstat(handle, &status) != 0 || status.st_nlink != 0;
}

int sync_retrying(int handle) {
    int result;
    do
        result = ::fsync(handle);
    while (result != 0 && errno == EINTR);
    // Pipes, terminals and some network folders have nothing to flush.
    return result != 0 && (errno == EINVAL || errno == EROFS || errno == ENOTSUP) ? 0 : result;
}

} // namespace

void remove_unfinished_files() noexcept {
    unfinished.drain([](const char* name) { ::unlink(name); });
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
    if (path.empty()) return Error{"the name of the file to write is empty"};
    AtomicFile file;
    file.path_ = path;
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) return failure(path, errno);
    if ((exists && S_ISDIR(status.st_mode)) || path.ends_with('/'))
        return Error{fmt::format("{}: {} a directory, expected the name of a file", path,
                                 exists ? "is" : "names")};
    if (exists && !S_ISREG(status.st_mode)) {
        file.target_ = file.temporary_ = path;
        const int handle = open_retrying(path, O_WRONLY);
        if (handle < 0) return failure(path, errno);
        file.handle_ = handle;
        return file;
    }
    // A rename needs no right on the old file; someone who took that right away meant it.
    if (exists && ::access(path.c_str(), W_OK) != 0) return failure(path, errno);

    file.target_ = follow_links(path);
    const std::string folder = folder_of(file.target_);
    int handle = -1;
    for (int attempt = 0; attempt < 16 && handle < 0; ++attempt) {
        unfinished.remove(file.slot_);
        file.temporary_ = folder + unique_name();
        file.slot_ = unfinished.add(file.temporary_);
        handle = open_retrying(file.temporary_, O_WRONLY | O_CREAT | O_EXCL);
        if (handle < 0 && errno != EEXIST) break;
        if (handle >= 0 && !claim(handle)) {
            ::close(std::exchange(handle, -1));
            errno = EEXIST;
        }
    }
    if (handle < 0) {
        const int code = errno;
        unfinished.remove(file.slot_);
        file.slot_ = -1;
        if ((code == ENOENT || code == ENOTDIR) && ::access(folder.c_str(), F_OK) != 0)
            return Error{fmt::format("{}: the folder {} does not exist", path, folder)};
        return Error{fmt::format("{}: cannot write in the folder {}: {}", path, folder,
                                 std::strerror(code))};
    }
    file.handle_ = handle;
    remove_abandoned(folder);
    if (exists) (void)!::fchmod(handle, status.st_mode & 07777);
    return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)),
      target_(std::move(other.target_)), handle_(std::exchange(other.handle_, -1)),
      slot_(std::exchange(other.slot_, -1)), size_(other.size_), written_(other.written_),
      collected_(std::move(other.collected_)) {}

AtomicFile::~AtomicFile() {
    if (handle_ < 0) return;
    ::close(static_cast<int>(handle_));
    if (temporary_ != target_) ::unlink(temporary_.c_str());
    unfinished.remove(slot_);
}

Result<void> AtomicFile::write_through(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        // One call takes at most 2 GiB, and less on some systems.
        const std::size_t part = std::min(bytes.size(), std::size_t{1} << 30);
        const ssize_t done = ::write(static_cast<int>(handle_), bytes.data(), part);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return write_failure(path_, errno, written_);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
        written_ += static_cast<std::uint64_t>(done);
    }
    return {};
}

Result<void> AtomicFile::commit() {
    MNM_CHECK(flush());
    const int handle = static_cast<int>(handle_);
    if (sync_retrying(handle) != 0) return write_failure(path_, errno, written_);
    if (temporary_ == target_) {
        handle_ = -1;
        if (::close(handle) != 0) return failure(path_, errno);
        return {};
    }
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) return failure(path_, errno);
    ::close(handle);
    handle_ = -1;
    unfinished.remove(std::exchange(slot_, -1));
    // The new name itself must reach the disk; where a folder cannot be opened, it has done so
    // alone.
    const int folder = open_retrying(folder_of(target_), O_RDONLY | O_DIRECTORY);
    if (folder >= 0) {
        sync_retrying(folder);
        ::close(folder);
    }
    temporary_ = target_;
    return {};
}

} // namespace mnm
