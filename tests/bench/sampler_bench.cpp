// SPDX-License-Identifier: MIT
// How long the drawing of one token takes, on each kernel level.
//
//     build/tests/bench/sampler_bench
#include "engine/sampler.h"

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    // Logits as a model gives them: normal, and some that stand out.
    std::mt19937 engine(1);
    std::normal_distribution<float> normal(0, 2);
    std::vector<float> logits(32768);
    for (float& logit : logits)
        logit = normal(engine);
    for (std::size_t i = 0; i < 20; ++i)
        logits[engine() % logits.size()] += 8;

    const mnm::SamplerOptions usual, everything{1.0, 1.0, 0, 0}, nucleus{1.0, 0.95, 0, 0};
    for (const std::string& level : mnm::kernels::usable_levels()) {
        const auto run = [&](const std::string& name, const mnm::SamplerOptions& options) {
            benchmark::RegisterBenchmark((name + "/" + level).c_str(),
                                         [&logits, level, options](benchmark::State& state) {
                                             mnm::Sampler sampler(options,
                                                                  *mnm::kernels::find(level));
                                             for (auto _ : state)
                                                 benchmark::DoNotOptimize(sampler.sample(logits));
                                         })
                ->Unit(benchmark::kMicrosecond);
        };
        run("temperature 0.7, top_k 64, top_p 0.9", usual);
        run("temperature 1, top_p 0.95", nucleus);
        run("temperature 1", everything);
    }
    benchmark::RunSpecifiedBenchmarks();
}
