// SPDX-License-Identifier: MIT
// Mapping a file with mmap.
#include "formats/mapped_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mnm {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
    const auto failed = [&] { return Error{fmt::format("{}: {}", path, std::strerror(errno))}; };
    // Without O_NONBLOCK, a pipe that nobody writes to would keep us here.
    const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0) return failed();
    struct Closer {
        int handle;
        ~Closer() { ::close(handle); }
    } closer{handle};

    struct stat status {};
    if (::fstat(handle, &status) != 0) return failed();
    if (S_ISDIR(status.st_mode)) return Error{fmt::format("{}: is a directory", path)};
    if (!S_ISREG(status.st_mode))
        return Error{fmt::format("{}: is not a regular file, so it cannot be mapped", path)};
    if (status.st_size == 0) return Error{fmt::format("{}: the file is empty", path)};
    if (static_cast<std::uintmax_t>(status.st_size) > SIZE_MAX)
        return Error{fmt::format("{}: {} bytes do not fit the address space", path,
                                 static_cast<std::uintmax_t>(status.st_size))};

    std::shared_ptr<MappedFile> file(new MappedFile);
    const auto size = static_cast<std::size_t>(status.st_size);
    void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, handle, 0);
    if (start == MAP_FAILED) return failed();
    file->path_ = path;
    file->bytes_ = {static_cast<const std::byte*>(start), size};
    return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::prefetch(std::size_t offset, std::size_t size) const {
    if (offset >= bytes_.size()) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t end = offset + std::min(size, bytes_.size() - offset);
    const std::size_t begin = offset / page * page;
    ::posix_madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin,
                    POSIX_MADV_WILLNEED);
}

} // namespace mnm
