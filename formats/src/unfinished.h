// SPDX-License-Identifier: MIT
// The temporary files that live now, in a form that a signal handler may walk.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>

namespace mnm {

/// Names are handed over by exchanging one pointer: whoever takes it out owns it.
template <class Char>
class UnfinishedNames {
  public:
    /// The slot to give back later; -1 when all are taken, and then only the object itself removes
    /// its file.
    int add(const std::basic_string<Char>& name) {
        auto* copy = new Char[name.size() + 1];
        std::copy_n(name.c_str(), name.size() + 1, copy);
        for (std::size_t i = 0; i < size; ++i) {
            Char* empty = nullptr;
            if (slots_[i].compare_exchange_strong(empty, copy)) return static_cast<int>(i);
        }
        delete[] copy;
        return -1;
    }

    void remove(int slot) noexcept {
        if (slot >= 0) delete[] slots_[slot].exchange(nullptr);
    }

    /// Frees nothing, for this runs in a signal handler; what it took stays within reach.
    template <class Unlink>
    void drain(Unlink unlink) noexcept {
        for (std::size_t i = 0; i < size; ++i) {
            Char* held = slots_[i].exchange(nullptr);
            if (held == nullptr) continue;
            unlink(held);
            drained_[i] = held;
        }
    }

  private:
    static_assert(std::atomic<Char*>::is_always_lock_free);
    static constexpr std::size_t size = 64;
    std::atomic<Char*> slots_[size]{};
    Char* drained_[size]{};
};

} // namespace mnm
