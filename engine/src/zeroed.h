// SPDX-License-Identifier: MIT
// Large arrays that cost nothing before they are used.
#pragma once

#include "engine/src/pages.h"

#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>

namespace mnm {

/// Zeros in pages of their own, which the system hands out as they are touched.
template <class T>
class Zeroed {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    /// Errors: std::bad_alloc.
    explicit Zeroed(std::size_t count, PageSize size = PageSize::normal) : count_(count) {
        if (count == 0) return;
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
        data_ = static_cast<T*>(take_pages(count * sizeof(T), size));
        if (data_ == nullptr) throw std::bad_alloc();
    }
    Zeroed(const Zeroed&) = delete;
    Zeroed& operator=(const Zeroed&) = delete;
    ~Zeroed() {
        if (data_ != nullptr) give_back_pages(data_, count_ * sizeof(T));
    }
    T* data() const { return data_; }
    std::size_t count() const { return count_; }
    T& operator[](std::size_t i) const { return data_[i]; }

  private:
    std::size_t count_;
    T* data_ = nullptr;
};

using Floats = Zeroed<float>;

} // namespace mnm
