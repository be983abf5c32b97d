// SPDX-License-Identifier: MIT
// AtomicFile on Windows: CREATE_NEW, FlushFileBuffers, MoveFileEx over the old file.
#include "formats/atomic_file.h"

#include "formats/src/unfinished.h"
#include "formats/src/windows_path.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <system_error>

namespace mnm {

namespace {

UnfinishedNames<wchar_t> unfinished;

Error failure(const std::string& path) {
    return Error{fmt::format("{}: {}", path, windows_error())};
}

HANDLE as_handle(std::intptr_t value) {
    return reinterpret_cast<HANDLE>(value);
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.find_last_of("/\\:");
    return slash == std::string::npos ? ".\\" : path.substr(0, slash + 1);
}

std::string unique_name() {
    static std::atomic<unsigned> count{0};
    std::random_device random;
    return fmt::format(".mnm-{}-{}-{:08x}.unfinished", GetCurrentProcessId(), count++, random());
}

/// NUL, CON, \\.\pipe\...: written directly.
bool is_device(HANDLE handle) {
    const DWORD type = GetFileType(handle);
    return type == FILE_TYPE_CHAR || type == FILE_TYPE_PIPE;
}

} // namespace

void remove_unfinished_files() noexcept {
    unfinished.drain([](const wchar_t* name) { DeleteFileW(name); });
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
    if (path.empty()) return Error{"the name of the file to write is empty"};
    AtomicFile file;
    file.path_ = path;
    file.target_ = path;
    const std::wstring wide = wide_path(path);
    const DWORD attributes = GetFileAttributesW(wide.c_str());
    const bool exists = attributes != INVALID_FILE_ATTRIBUTES;
    const bool slash = path.ends_with('/') || path.ends_with('\\');
    if ((exists && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) || slash)
        return Error{fmt::format("{}: {} a directory, expected the name of a file", path,
                                 exists ? "is" : "names")};
    const HANDLE old = CreateFileW(wide.c_str(), GENERIC_WRITE,
                                   FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                   OPEN_EXISTING, 0, nullptr);
    if (old == INVALID_HANDLE_VALUE) {
        const DWORD code = GetLastError();
        if (code != ERROR_FILE_NOT_FOUND && code != ERROR_PATH_NOT_FOUND) return failure(path);
    } else if (is_device(old)) {
        file.temporary_ = path;
        file.handle_ = reinterpret_cast<std::intptr_t>(old);
        return file;
    } else {
        CloseHandle(old);
    }
    if (exists && (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
        std::error_code none;
        const auto real = std::filesystem::canonical(std::filesystem::path(wide), none);
        if (!none) file.target_ = from_path(real);
    }

    const std::string folder = folder_of(file.target_);
    file.temporary_ = folder + unique_name();
    const std::wstring name = wide_path(file.temporary_);
    file.slot_ = unfinished.add(name);
    // FILE_SHARE_DELETE lets a handler remove the file while it is open.
    const HANDLE handle =
        CreateFileW(name.c_str(), GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr,
                    CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (handle == INVALID_HANDLE_VALUE) {
        const DWORD code = GetLastError();
        unfinished.remove(std::exchange(file.slot_, -1));
        if (code == ERROR_PATH_NOT_FOUND)
            return Error{fmt::format("{}: the folder {} does not exist", path, folder)};
        return Error{fmt::format("{}: cannot write in the folder {}: {}", path, folder,
                                 windows_error(code))};
    }
    file.handle_ = reinterpret_cast<std::intptr_t>(handle);
    return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)),
      target_(std::move(other.target_)), handle_(std::exchange(other.handle_, -1)),
      slot_(std::exchange(other.slot_, -1)), size_(other.size_), written_(other.written_),
      collected_(std::move(other.collected_)) {}

AtomicFile::~AtomicFile() {
    if (handle_ == -1) return;
    CloseHandle(as_handle(handle_));
    if (temporary_ != target_) DeleteFileW(wide_path(temporary_).c_str());
    unfinished.remove(slot_);
}

Result<void> AtomicFile::write_through(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const auto part = static_cast<DWORD>(std::min(bytes.size(), std::size_t{1} << 28));
        DWORD done = 0;
        if (!WriteFile(as_handle(handle_), bytes.data(), part, &done, nullptr))
            return failure(path_);
        bytes = bytes.subspan(done);
        written_ += done;
    }
    return {};
}

Result<void> AtomicFile::commit() {
    MNM_CHECK(flush());
    const bool direct = temporary_ == target_;
    if (!FlushFileBuffers(as_handle(handle_)) && !direct) return failure(path_);
    if (direct) {
        CloseHandle(as_handle(std::exchange(handle_, -1)));
        return {};
    }
    const std::wstring from = wide_path(temporary_);
    CloseHandle(as_handle(std::exchange(handle_, -1)));
    const bool moved = MoveFileExW(from.c_str(), wide_path(target_).c_str(),
                                   MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
    const DWORD code = GetLastError();
    if (!moved) DeleteFileW(from.c_str());
    unfinished.remove(std::exchange(slot_, -1));
    if (!moved) return Error{fmt::format("{}: {}", path_, windows_error(code))};
    temporary_ = target_;
    return {};
}

} // namespace mnm
