// SPDX-License-Identifier: MIT
// How fast this machine reads memory, and how fast it multiplies.
#include "engine/machine_limits.h"

#include "engine/median.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace mnm {
namespace {

/// The median rate of `units` done by each call of `pass`.
template <class Pass>
double median_rate(int passes, double units, Pass&& pass) {
    std::vector<double> rates;
    for (int i = 0; i < passes; ++i) {
        const auto start = std::chrono::steady_clock::now();
        pass();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        rates.push_back(units / taken.count());
    }
    return median(rates);
}

} // namespace

Result<double> read_bandwidth(Parallel& parallel, const kernels::Kernels& kernels) {
    constexpr std::size_t bytes = std::size_t{512} << 20;
    constexpr std::size_t words_per_grain = 32768; // 256 KiB
    constexpr std::size_t count = bytes / sizeof(std::uint64_t);

    // Filled by the threads themselves, so that the pages are there and near to them.
    const std::unique_ptr<std::uint64_t[]> words(new (std::nothrow) std::uint64_t[count]);
    if (!words) return Error{"not enough memory for measuring how fast it is read: 512 MB"};
    parallel.for_ranges(count, words_per_grain, [&](std::size_t begin, std::size_t end, unsigned) {
        for (std::size_t i = begin; i < end; ++i)
            words[i] = i;
    });
    std::atomic<std::uint64_t> kept = 0; // so that none of the reads can be left out
    return median_rate(7, static_cast<double>(bytes), [&] {
        parallel.for_ranges(count, words_per_grain,
                            [&](std::size_t begin, std::size_t end, unsigned) {
                                kept += kernels.sum_words(words.get() + begin, end - begin);
                            });
    });
}

double integer_peak(Parallel& parallel, const kernels::Kernels& kernels) {
    const std::uint64_t each = kernels.dot_loop(1) * 100000; // a whole number of its rounds
    const std::uint64_t done = each * parallel.threads();
    return median_rate(7, static_cast<double>(done), [&] {
        parallel.for_ranges(parallel.threads(), 1,
                            [&](std::size_t begin, std::size_t end, unsigned) {
                                for (std::size_t i = begin; i < end; ++i)
                                    kernels.dot_loop(each);
                            });
    });
}

} // namespace mnm
