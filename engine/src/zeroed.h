// SPDX-License-Identifier: MIT
// Large arrays that cost nothing before they are used.
#pragma once

#include "engine/src/pages.h"

#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

namespace mnm {

/// Zeros at a cache line. Large arrays are pages of their own, which the system hands out as they
/// are touched; small ones come from the heap, where a sanitizer sees both their ends.
template <class T>
class Zeroed {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    static constexpr std::size_t large = std::size_t{64} << 10;
    static constexpr std::align_val_t line{64};

  public:
    /// Errors: std::bad_alloc.
    explicit Zeroed(std::size_t count, PageSize size = PageSize::normal) : count_(count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
        if (bytes() < large) {
            data_ = static_cast<T*>(std::memset(::operator new(bytes(), line), 0, bytes()));
        } else {
            data_ = static_cast<T*>(take_pages(bytes(), size));
            if (data_ == nullptr) throw std::bad_alloc();
        }
    }
    Zeroed(const Zeroed&) = delete;
    Zeroed& operator=(const Zeroed&) = delete;
    ~Zeroed() {
        if (bytes() < large) {
            ::operator delete(data_, line);
        } else {
            give_back_pages(data_, bytes());
        }
    }
    T* data() const { return data_; }
    std::size_t count() const { return count_; }
    T& operator[](std::size_t i) const { return data_[i]; }

  private:
    std::size_t bytes() const { return count_ * sizeof(T); }

    std::size_t count_;
    T* data_;
};

using Floats = Zeroed<float>;

} // namespace mnm
