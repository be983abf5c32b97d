// SPDX-License-Identifier: MIT
// NumPy's .npy, version 1.0: one float32 array.
#pragma once

#include "formats/atomic_file.h"
#include "formats/result.h"

#include <cstdint>
#include <span>
#include <string>

namespace mnm::cli {

/// Writes a [rows][cols] array row by row. The name is taken by commit().
class NpyFile {
  public:
    static Result<NpyFile> create(const std::string& path, std::uint64_t rows, std::uint64_t cols);
    Result<void> append(std::span<const float> row);
    Result<void> commit() { return file_.commit(); }

  private:
    explicit NpyFile(AtomicFile file) : file_(std::move(file)) {}
    AtomicFile file_;
};

} // namespace mnm::cli
