// SPDX-License-Identifier: MIT
// Threads. The only file of the program behind which oneTBB stands.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace mnm {

/// A fixed team of threads. One region at a time; not to be shared by two threads.
class Parallel {
  public:
    explicit Parallel(unsigned threads);
    ~Parallel();
    Parallel(const Parallel&) = delete;
    Parallel& operator=(const Parallel&) = delete;

    unsigned threads() const { return threads_; }
    static constexpr std::size_t few_parts = 2, many_parts = 6;

    /// body(begin, end, worker) over [0, n) in ranges whose starts are multiples of `grain`; worker
    /// is in [0, threads()) and no two ranges run under one worker at once. The ranges may depend
    /// on timing, so a body must give the same bits however [0, n) is cut.
    /// About `parts_per_thread` ranges for each thread: many even out threads that other programs
    /// hold up, few read memory in longer pieces.
    /// What a body throws is thrown again here, after all ranges have ended: the first of them.
    template <class Body>
    void for_ranges(std::size_t n, std::size_t grain, Body&& body,
                    std::size_t parts_per_thread = many_parts) {
        using Plain = std::remove_reference_t<Body>;
        run(
            n, grain, parts_per_thread,
            [](void* context, std::size_t begin, std::size_t end, unsigned worker) {
                (*static_cast<Plain*>(context))(begin, end, worker);
            },
            const_cast<void*>(static_cast<const void*>(&body)));
    }

    /// Runs body() inside the team, so that the regions it opens start without entering it anew.
    /// @throws std::runtime_error where the system gives no threads, and what body throws
    template <class Body>
    void enter(Body&& body) {
        using Plain = std::remove_reference_t<Body>;
        run_inside([](void* context) { (*static_cast<Plain*>(context))(); },
                   const_cast<void*>(static_cast<const void*>(&body)));
    }

  private:
    using RangeFunction = void (*)(void*, std::size_t, std::size_t, unsigned);
    void run(std::size_t n, std::size_t grain, std::size_t parts_per_thread, RangeFunction function,
             void* context);
    void run_inside(void (*function)(void*), void* context);

    struct Team;

    unsigned threads_;
    std::unique_ptr<Team> team_;
};

} // namespace mnm
