// SPDX-License-Identifier: MIT
// The team of threads, on oneTBB.
#include "engine/parallel.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

namespace mnm {

struct Parallel::Team {
    explicit Team(unsigned threads)
        : limit(tbb::global_control::max_allowed_parallelism, threads),
          arena(static_cast<int>(threads)) {}

    tbb::global_control limit; // allows more threads than processors when asked for
    tbb::task_arena arena;
    bool inside = false;
};

Parallel::Parallel(unsigned threads) : threads_(std::max(threads, 1U)) {
    if (threads_ > 1) team_ = std::make_unique<Team>(threads_);
}

Parallel::~Parallel() = default;

void Parallel::run_inside(void (*function)(void*), void* context) {
    if (!team_ || team_->inside) {
        function(context);
        return;
    }
    team_->inside = true;
    team_->arena.execute([&] { function(context); });
    team_->inside = false;
}

void Parallel::run(std::size_t n, std::size_t grain, RangeFunction function, void* context) {
    const std::size_t grains = (n + grain - 1) / grain;
    const std::size_t parts = std::min<std::size_t>(threads_, grains);
    if (parts <= 1) {
        if (n > 0) function(context, 0, n, 0);
        return;
    }
    auto part = [=](std::size_t index) { return std::min(n, grains * index / parts * grain); };
    auto region = [&] {
        tbb::parallel_for(
            tbb::blocked_range<std::size_t>(0, parts, 1),
            [&](const tbb::blocked_range<std::size_t>& range) {
                const int worker = tbb::this_task_arena::current_thread_index();
                for (std::size_t i = range.begin(); i < range.end(); ++i) {
                    function(context, part(i), part(i + 1), static_cast<unsigned>(worker));
                }
            },
            tbb::static_partitioner());
    };
    if (team_->inside) {
        region();
    } else {
        team_->arena.execute(region);
    }
}

} // namespace mnm
