// SPDX-License-Identifier: MIT
// NumPy's .npy, version 1.0.
#include "cli/npy_file.h"

#include <fmt/format.h>

#include <bit>

namespace mnm::cli {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

Result<NpyFile> NpyFile::create(const std::string& path, std::uint64_t rows, std::uint64_t cols) {
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
    // Magic, version and length take 10 bytes; the data starts on a multiple of 64.
    constexpr std::size_t preamble = 10;
    header.append(63 - (preamble + header.size()) % 64, ' ');
    header += '\n';
    const auto length = static_cast<std::uint16_t>(header.size());

    MNM_TRY(AtomicFile file, AtomicFile::create(path));
    NpyFile npy(std::move(file));
    const std::string start = std::string("\x93NUMPY\x01\x00", 8) +
                              static_cast<char>(length & 0xFF) + static_cast<char>(length >> 8) +
                              header;
    MNM_CHECK(npy.file_.write(std::as_bytes(std::span(start))));
    return npy;
}

Result<void> NpyFile::append(std::span<const float> row) {
    return file_.write(std::as_bytes(row));
}

} // namespace mnm::cli
