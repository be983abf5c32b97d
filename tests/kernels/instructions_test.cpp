// SPDX-License-Identifier: MIT
// How many instructions the hot kernels execute for a weight byte: a guard over speed that does not
// depend on how busy the machine is. A child is run step by step, at every usable level, so vectors
// that no simulator knows are counted too.
#include "kernels/kernels.h"
#include "tests/kernels/level_under_test.h"

#include <boost/test/unit_test.hpp>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

using namespace mnm::kernels;
using mnm::tests::Fill;
using mnm::tests::floats;
using mnm::tests::Guarded;

namespace {

constexpr std::size_t cols = 256;

/// Instructions from one stop of a child to the next, with `work` in between; 0: not allowed here.
std::uint64_t steps(const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
        std::raise(SIGSTOP);
        work();
        std::raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return 0;
    std::uint64_t count = 0;
    do {
        ++count;
        if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) return 0;
        waitpid(child, &status, 0);
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return count;
}

/// Products of q8 or q4 rows with some tokens.
class Product {
  public:
    Product(const Kernels& table, bool q8, std::size_t tokens)
        : table_(table), q8_(q8), weights_(2 * rows * cols), scales_(2 * rows * cols / group, 1.0f),
          x_(floats(tokens * cols, Fill::random, 1)), q_(tokens * cols),
          xscale_(tokens * cols / group), sum_(tokens * cols / group), y_(tokens * 2 * rows),
          scratch_(matmul_scratch(cols)), input_{q_.data(), xscale_.data(), sum_.data(), tokens,
                                                 cols} {
        table.quantize(x_.data(), x_.size(), q_.data(), xscale_.data(), sum_.data());
        run(2 * rows); // whatever is done once is done
    }
    void run(std::size_t n) {
        const Target target{y_.data(), 2 * rows, false};
        if (q8_) {
            table_.matmul_q8(weights_.data(), scales_.data(), 0, n, input_, target,
                             scratch_.data());
        } else {
            table_.matmul_q4(reinterpret_cast<std::uint8_t*>(weights_.data()), scales_.data(), 0, n,
                             input_, target, scratch_.data());
        }
    }
    /// The difference of two counts leaves only what the rows cost.
    double instructions_per_byte() {
        const std::uint64_t one = steps([&] { run(rows); }), two = steps([&] { run(2 * rows); });
        if (one == 0 || two == 0) return 0;
        const double bytes = static_cast<double>(rows * cols) * (q8_ ? 1.0 : 0.625);
        return static_cast<double>(two - one) / bytes;
    }

  private:
    static constexpr std::size_t rows = 32;
    const Kernels& table_;
    bool q8_;
    std::vector<std::int8_t> weights_;
    std::vector<float> scales_;
    std::vector<float> x_;
    std::vector<std::int8_t> q_;
    std::vector<float> xscale_;
    std::vector<std::int32_t> sum_;
    std::vector<float> y_;
    Guarded<std::byte> scratch_;
    QuantizedRows input_;
};

/// Most instructions for a weight byte (scales of q4 counted): q8 and q4 with one token, then with
/// some. A quarter above what GCC 12 makes.
constexpr double none = 0;
struct Bounds {
    double q8_decode, q4_decode, q8_prefill, q4_prefill;
    std::size_t tokens = 12;
};
const std::map<std::string, Bounds> bounds = {
    {"portable", {1.8, 2.45, none, none}}, // a million steps
    {"avx2", {0.42, 0.75, 4.3, 5.2}},          {"avx_vnni", {0.39, 0.72, 2.2, 3.9}},
    {"avx512_vnni", {0.24, 0.43, 1.05, 1.65}}, {"amx_int8", {0.24, 0.43, 0.59, 0.94, 16}},
};

} // namespace

BOOST_AUTO_TEST_SUITE(instructions_test)

BOOST_AUTO_TEST_CASE(hot_kernels_stay_within_their_instructions) {
    for (const std::string& level : usable_levels()) {
        const auto found = bounds.find(level);
        if (found == bounds.end()) continue;
        const Bounds& most = found->second;
        const Kernels& table = *find(level);
        const auto within = [&](bool q8, std::size_t tokens, double bound) {
            if (bound == none) return;
            const double count = Product(table, q8, tokens).instructions_per_byte();
            if (count == 0) std::exit(77); // no tracing in this sandbox: skipped
            BOOST_TEST_MESSAGE(level << (q8 ? " q8 " : " q4 ") << tokens << " tokens: " << count
                                     << " instructions a byte");
            BOOST_TEST(count <= bound, level << (q8 ? " q8 " : " q4 ") << tokens << " tokens: "
                                             << count << " instructions a byte, at most " << bound);
        };
        within(true, 1, most.q8_decode);
        within(false, 1, most.q4_decode);
        within(true, most.tokens, most.q8_prefill);
        within(false, most.tokens, most.q4_prefill);
    }
}

BOOST_AUTO_TEST_SUITE_END()
