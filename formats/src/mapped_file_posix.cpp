// SPDX-License-Identifier: MIT
// Mapping a file with mmap.
#include "formats/mapped_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mnm {

namespace {

/// What a handler of SIGBUS may read. `end` is set last and cleared first.
struct Range {
    std::atomic<bool> taken{false};
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
    std::atomic<const char*> path{nullptr};
};
Range ranges[64];
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

int add_range(std::span<const std::byte> bytes, const std::string& path) {
    for (std::size_t i = 0; i < std::size(ranges); ++i) {
        if (ranges[i].taken.exchange(true)) continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
        ranges[i].path = path.c_str();
        ranges[i].begin = begin;
        ranges[i].end = begin + bytes.size();
        return static_cast<int>(i);
    }
    return -1; // its faults will not be named
}

void remove_range(int slot) {
    if (slot < 0) return;
    ranges[slot].end = 0;
    ranges[slot].path = nullptr;
    ranges[slot].taken = false;
}

#ifdef __APPLE__
const timespec& time_of(const struct stat& status) {
    return status.st_mtimespec;
}
#else
const timespec& time_of(const struct stat& status) {
    return status.st_mtim;
}
#endif

} // namespace

const char* mapped_path_at(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (const Range& range : ranges)
        if (at < range.end && at >= range.begin) return range.path;
    return nullptr;
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
    const auto failed = [&] { return Error{fmt::format("{}: {}", path, std::strerror(errno))}; };
    // Without O_NONBLOCK, a pipe that nobody writes to would keep us here.
    const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0) return failed();
    std::shared_ptr<MappedFile> file(new MappedFile);
    file->handle_ = handle;
    file->path_ = path;

    struct stat status {};
    if (::fstat(handle, &status) != 0) return failed();
    if (S_ISDIR(status.st_mode)) return Error{fmt::format("{}: is a directory", path)};
    if (!S_ISREG(status.st_mode))
        return Error{
            fmt::format("{}: is a pipe or a device, where a file is needed: save it first", path)};
    if (status.st_size == 0) return Error{fmt::format("{}: the file is empty", path)};
    if (static_cast<std::uintmax_t>(status.st_size) > SIZE_MAX)
        return Error{fmt::format("{}: {} bytes do not fit the address space", path,
                                 static_cast<std::uintmax_t>(status.st_size))};

    const auto size = static_cast<std::size_t>(status.st_size);
    void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, handle, 0);
    if (start == MAP_FAILED) return failed();
#ifdef MADV_HUGEPAGE
    // File systems of newer kernels then read in pieces of 2 MiB, each one page for the processor.
    ::madvise(start, size, MADV_HUGEPAGE);
#endif
    file->bytes_ = {static_cast<const std::byte*>(start), size};
    file->modified_[0] = time_of(status).tv_sec;
    file->modified_[1] = time_of(status).tv_nsec;
    file->slot_ = add_range(file->bytes_, file->path_);
    return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
    remove_range(slot_);
    if (handle_ >= 0) ::close(static_cast<int>(handle_));
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

namespace {

void advise(std::span<const std::byte> bytes, std::size_t offset, std::size_t size, int advice) {
    if (offset >= bytes.size()) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t end = offset + std::min(size, bytes.size() - offset);
    const std::size_t begin = offset / page * page;
    ::madvise(const_cast<std::byte*>(bytes.data()) + begin, end - begin, advice);
}

} // namespace

void MappedFile::prefetch(std::size_t offset, std::size_t size) const {
    advise(bytes_, offset, size, MADV_WILLNEED);
}

void MappedFile::release(std::size_t offset, std::size_t size) const {
    advise(bytes_, offset, size, MADV_DONTNEED);
}

Result<void> MappedFile::check_unchanged() const {
    struct stat status {};
    if (::fstat(static_cast<int>(handle_), &status) != 0)
        return Error{fmt::format("{}: {}", path_, std::strerror(errno))};
    if (static_cast<std::uintmax_t>(status.st_size) == bytes_.size() &&
        time_of(status).tv_sec == modified_[0] && time_of(status).tv_nsec == modified_[1])
        return {};
    return Error{fmt::format("{}: was changed while it was read; run the command again when its "
                             "writer is done",
                             path_)};
}

} // namespace mnm
