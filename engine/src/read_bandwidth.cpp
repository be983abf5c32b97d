// SPDX-License-Identifier: MIT
// How fast this machine reads memory.
#include "engine/read_bandwidth.h"

#include "engine/median.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mnm {
namespace {

/// Every byte of a whole number of cache lines enters the sum, so none of the reads can be left
/// out.
std::uint64_t sum_lines(const std::uint64_t* words, std::size_t lines) {
    std::uint64_t sums[8] = {};
    for (std::size_t line = 0; line < lines; ++line)
        for (std::size_t k = 0; k < 8; ++k)
            sums[k] += words[line * 8 + k];
    std::uint64_t total = 0;
    for (const std::uint64_t sum : sums)
        total += sum;
    return total;
}

} // namespace

double read_bandwidth(Parallel& parallel) {
    constexpr std::size_t bytes = std::size_t{512} << 20;
    constexpr std::size_t lines = bytes / 64;
    constexpr std::size_t grain = 4096; // lines: 256 KiB
    constexpr int passes = 7;

    // Filled by the threads themselves, so that the pages are there and near to them.
    const std::unique_ptr<std::uint64_t[]> words(new std::uint64_t[lines * 8]);
    parallel.for_ranges(lines, grain, [&](std::size_t begin, std::size_t end, unsigned) {
        for (std::size_t i = begin * 8; i < end * 8; ++i)
            words[i] = i;
    });

    std::atomic<std::uint64_t> kept = 0;
    std::vector<double> rates;
    for (int pass = 0; pass < passes; ++pass) {
        const auto start = std::chrono::steady_clock::now();
        parallel.for_ranges(lines, grain, [&](std::size_t begin, std::size_t end, unsigned) {
            kept += sum_lines(words.get() + begin * 8, end - begin);
        });
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        rates.push_back(static_cast<double>(bytes) / taken.count());
    }
    return median(rates);
}

} // namespace mnm
