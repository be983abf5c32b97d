// SPDX-License-Identifier: MIT
// operator new and delete that count. Requests for more than the usual alignment are not counted.
#include "tests/hostile/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> held{0};
std::atomic<std::size_t> most{0};
/// In front of each block stands its size.
constexpr std::size_t front = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
static_assert(front >= sizeof(std::size_t));

} // namespace

void* operator new(std::size_t size) {
    auto* block = static_cast<std::byte*>(std::malloc(size + front));
    if (block == nullptr) throw std::bad_alloc();
    *reinterpret_cast<std::size_t*>(block) = size;
    const std::size_t now = held += size;
    for (std::size_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    return block + front;
}

void operator delete(void* pointer) noexcept {
    if (pointer == nullptr) return;
    auto* block = static_cast<std::byte*>(pointer) - front;
    held -= *reinterpret_cast<std::size_t*>(block);
    std::free(block);
}

void operator delete(void* pointer, std::size_t) noexcept {
    operator delete(pointer);
}

namespace mnm::tests {

Allocations::Allocations() : start_(held) {
    most = start_;
}

std::size_t Allocations::peak() const {
    const std::size_t seen = most;
    return seen > start_ ? seen - start_ : 0;
}

} // namespace mnm::tests
