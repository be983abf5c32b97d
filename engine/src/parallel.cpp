// SPDX-License-Identifier: MIT
// The team of threads: oneTBB brings them together once for each forward pass, and while they are
// together regions are handed out through one atomic word, which takes well under a microsecond.
#include "engine/parallel.h"

#include <fmt/format.h>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace mnm {
namespace {

/// Waits a little; gives the processor away when it takes long, so that more threads than
/// processors do not starve each other.
class Patience {
  public:
    void wait() {
        if (++rounds_ < 4000) {
#if defined(__x86_64__) || defined(_M_X64)
            _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
            __asm__ volatile("yield");
#endif
        } else {
            std::this_thread::yield();
        }
    }

  private:
    unsigned rounds_ = 0;
};

} // namespace

struct Parallel::Team {
    explicit Team(unsigned threads)
        : limit(tbb::global_control::max_allowed_parallelism, threads),
          arena(static_cast<int>(threads)) {}

    /// The region's number, its parts, and the next part to take, in one word: a part is taken by
    /// changing the word, which fails if the region is over.
    static constexpr std::uint64_t pack(std::uint64_t region, std::uint64_t parts) {
        return region << 32 | parts << 16;
    }

    /// Takes parts of the current region until none is left; returns whether there was any.
    bool help(unsigned worker) {
        bool helped = false;
        for (std::uint64_t word = board.load(std::memory_order_acquire);;) {
            const std::uint64_t next = word & 0xFFFF, parts = word >> 16 & 0xFFFF;
            if (next >= parts) return helped;
            if (!board.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
                continue;
            }
            const std::size_t grains = (n + grain - 1) / grain;
            const auto start = [&](std::size_t i) {
                return std::min(n, grains * i / parts * grain);
            };
            try {
                function(context, start(next), start(next + 1), worker);
            } catch (...) { // without this part's end the caller would wait for ever
                if (!failed.exchange(true)) failure = std::current_exception();
            }
            done.fetch_add(1, std::memory_order_release);
            helped = true;
            word = board.load(std::memory_order_acquire);
        }
    }

    /// What the others do from the beginning of a pass to its end.
    void serve(unsigned worker) {
        Patience patience;
        while (!over.load(std::memory_order_acquire)) {
            if (help(worker)) {
                patience = {};
            } else {
                patience.wait();
            }
        }
    }

    static unsigned worker() {
        return static_cast<unsigned>(tbb::this_task_arena::current_thread_index());
    }

    /// A pass, on the caller's thread; sends the others home also where it ends by an exception.
    struct Together {
        explicit Together(Team& t) : team(t) {
            team.caller = worker();
            team.together = true;
        }
        ~Together() {
            team.together = false;
            team.over.store(true, std::memory_order_release);
        }
        Together(const Together&) = delete;
        Together& operator=(const Together&) = delete;
        Team& team;
    };

    tbb::global_control limit; // allows more threads than processors when asked for
    tbb::task_arena arena;
    bool together = false; ///< between the beginning and the end of a pass; the caller's alone
    unsigned caller = 0;
    std::atomic<bool> over{false};

    // The current region: written by the caller while no part is out.
    RangeFunction function = nullptr;
    void* context = nullptr;
    std::size_t n = 0;
    std::size_t grain = 1;
    std::uint64_t region = 0;
    std::atomic<bool> failed{false};
    std::exception_ptr failure; ///< of the part that failed first; read when all have ended

    alignas(64) std::atomic<std::uint64_t> board{0};
    alignas(64) std::atomic<std::uint64_t> done{0};
};

Parallel::Parallel(unsigned threads) : threads_(std::max(threads, 1U)) {
    if (threads_ > 1) team_ = std::make_unique<Team>(threads_);
}

Parallel::~Parallel() = default;

void Parallel::run_inside(void (*function)(void*), void* context) {
    if (!team_ || team_->together) {
        function(context);
        return;
    }
    Team& team = *team_;
    team.over.store(false, std::memory_order_relaxed);
    bool begun = false; // the caller's alone
    try {
        team.arena.execute([&] {
            const std::thread::id caller = std::this_thread::get_id();
            tbb::parallel_for(
                tbb::blocked_range<unsigned>(0, threads_, 1),
                [&](const tbb::blocked_range<unsigned>&) {
                    if (std::this_thread::get_id() == caller && !begun) {
                        begun = true;
                        const Team::Together pass(team);
                        function(context);
                    } else {
                        team.serve(Team::worker()); // at once when the pass is over
                    }
                },
                tbb::static_partitioner());
        });
    } catch (const std::exception& error) {
        if (begun) throw;
        throw std::runtime_error(fmt::format("{} threads could not be started ({}); --threads 1 "
                                             "needs no others",
                                             threads_, error.what()));
    }
}

void Parallel::run(std::size_t n, std::size_t grain, std::size_t parts_per_thread,
                   RangeFunction function, void* context) {
    if (n == 0) return;
    const std::size_t grains = (n + grain - 1) / grain;
    if (!team_ || grains == 1) {
        function(context, 0, n, team_ && team_->together ? team_->caller : 0);
        return;
    }
    Team& team = *team_;
    if (!team.together) {
        enter([&] { run(n, grain, parts_per_thread, function, context); });
        return;
    }
    // More parts than threads: who is held up by another program leaves work to the others.
    const std::uint64_t parts =
        std::min<std::uint64_t>({grains, threads_ * parts_per_thread, 0xFFFF});
    team.function = function;
    team.context = context;
    team.n = n;
    team.grain = grain;
    team.done.store(0, std::memory_order_relaxed);
    team.board.store(Team::pack(++team.region, parts), std::memory_order_release);
    team.help(team.caller);
    for (Patience patience; team.done.load(std::memory_order_acquire) < parts;)
        patience.wait();
    if (team.failed.load(std::memory_order_relaxed)) {
        team.failed.store(false, std::memory_order_relaxed);
        std::rethrow_exception(std::exchange(team.failure, nullptr));
    }
}

} // namespace mnm
