// SPDX-License-Identifier: MIT
// The two tables a kernel test compares.
#pragma once

#include "kernels/table.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <vector>

namespace mnm::tests {

const kernels::Kernels& reference();
const kernels::Kernels& level_under_test();

/// Bit for bit.
inline bool same(const float* a, const float* b, std::size_t n) {
    return std::memcmp(a, b, n * sizeof(float)) == 0;
}

/// Cache-line aligned storage followed by guard bytes, as a kernel's scratch or output.
template <class T>
class Guarded {
  public:
    explicit Guarded(std::size_t count) : count_(count) {
        const std::size_t bytes = count * sizeof(T) + guard;
        data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}));
        for (std::size_t i = 0; i < bytes; ++i)
            data_[i] = fill;
    }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;
    ~Guarded() { ::operator delete (data_, std::align_val_t{64}); }
    T* data() { return reinterpret_cast<T*>(data_); }
    bool intact() const {
        for (std::size_t i = 0; i < guard; ++i) {
            if (data_[count_ * sizeof(T) + i] != fill) return false;
        }
        return true;
    }

  private:
    static constexpr std::size_t guard = 256;
    static constexpr std::byte fill{0xA5};
    std::size_t count_;
    std::byte* data_;
};

/// Kinds of float input that have broken kernels before.
enum class Fill { random, zeros, denormals, outlier, tiny_and_huge, negative };
inline constexpr Fill all_fills[] = {Fill::random,  Fill::zeros,         Fill::denormals,
                                     Fill::outlier, Fill::tiny_and_huge, Fill::negative};

inline std::vector<float> floats(std::size_t n, Fill fill, std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (float& v : x) {
        v = normal(engine);
        if (fill == Fill::zeros) v = 0;
        if (fill == Fill::denormals) v *= 1e-41f;
        if (fill == Fill::tiny_and_huge) v *= engine() % 2 == 0 ? 1e-30f : 1e15f;
        if (fill == Fill::negative) v = -1.0f;
    }
    if (fill == Fill::outlier && n > 0) x[engine() % n] = 3e4f;
    return x;
}

} // namespace mnm::tests
