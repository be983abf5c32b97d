// SPDX-License-Identifier: MIT
// How much memory a piece of a program asks for through operator new.
#pragma once

#include <cstddef>

namespace mnm::tests {

/// Counting starts anew at construction; one at a time.
class Allocations {
  public:
    Allocations();
    /// The most bytes that were held at once beyond what was held at the start.
    std::size_t peak() const;

  private:
    std::size_t start_;
};

} // namespace mnm::tests
