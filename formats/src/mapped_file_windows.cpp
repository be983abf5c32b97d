// SPDX-License-Identifier: MIT
// Mapping a file with MapViewOfFile.
#include "formats/mapped_file.h"

#include "formats/src/windows_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace mnm {

namespace {

struct Handle {
    HANDLE value;
    ~Handle() {
        if (value != nullptr && value != INVALID_HANDLE_VALUE) CloseHandle(value);
    }
};

} // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
    const auto failed = [&] { return Error{fmt::format("{}: {}", path, windows_error())}; };
    const std::wstring wide = wide_path(path);
    const DWORD attributes = GetFileAttributesW(wide.c_str());
    if (attributes == INVALID_FILE_ATTRIBUTES) return failed();
    if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0)
        return Error{fmt::format("{}: is a directory", path)};
    // Sharing the right to write lets an AtomicFile that is still open be read back.
    constexpr DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    const Handle handle{CreateFileW(wide.c_str(), GENERIC_READ, share, nullptr, OPEN_EXISTING,
                                    FILE_ATTRIBUTE_NORMAL, nullptr)};
    if (handle.value == INVALID_HANDLE_VALUE) return failed();
    if (GetFileType(handle.value) != FILE_TYPE_DISK)
        return Error{
            fmt::format("{}: is a pipe or a device, where a file is needed: save it first", path)};

    LARGE_INTEGER size;
    if (!GetFileSizeEx(handle.value, &size)) return failed();
    if (size.QuadPart == 0) return Error{fmt::format("{}: the file is empty", path)};
    if (static_cast<std::uint64_t>(size.QuadPart) > SIZE_MAX)
        return Error{fmt::format("{}: {} bytes do not fit the address space", path, size.QuadPart)};

    // The view keeps the mapping, and that the file, after both handles are closed.
    const Handle section{CreateFileMappingW(handle.value, nullptr, PAGE_READONLY, 0, 0, nullptr)};
    if (section.value == nullptr) return failed();
    std::shared_ptr<MappedFile> file(new MappedFile);
    const void* start = MapViewOfFile(section.value, FILE_MAP_READ, 0, 0, 0);
    if (start == nullptr) return failed();
    file->path_ = path;
    file->bytes_ = {static_cast<const std::byte*>(start), static_cast<std::size_t>(size.QuadPart)};
    return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) UnmapViewOfFile(bytes_.data());
}

Result<void> MappedFile::check_unchanged() const {
    return {};
}

const char* mapped_path_at(const void*) noexcept {
    return nullptr;
}

void MappedFile::prefetch(std::size_t offset, std::size_t size) const {
    if (offset >= bytes_.size()) return;
    // PrefetchVirtualMemory came with Windows 8; asking for it by name keeps older ones running.
    struct Range {
        void* start;
        SIZE_T size;
    } range{const_cast<std::byte*>(bytes_.data()) + offset, std::min(size, bytes_.size() - offset)};
    using Prefetch = BOOL(WINAPI*)(HANDLE, ULONG_PTR, Range*, ULONG);
    const HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    if (kernel == nullptr) return;
    const auto address = GetProcAddress(kernel, "PrefetchVirtualMemory");
    if (address == nullptr) return;
    reinterpret_cast<Prefetch>(reinterpret_cast<void*>(address))(GetCurrentProcess(), 1, &range, 0);
}

void MappedFile::release(std::size_t offset, std::size_t size) const {
    if (offset >= bytes_.size()) return;
    // Takes pages that are not locked, as these, out of the working set.
    VirtualUnlock(const_cast<std::byte*>(bytes_.data()) + offset,
                  std::min(size, bytes_.size() - offset));
}

} // namespace mnm
