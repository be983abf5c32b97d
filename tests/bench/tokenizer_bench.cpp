// SPDX-License-Identifier: MIT
// How fast one thread turns text into tokens.
//
//     build/tests/bench/tokenizer_bench models/tokenizer.bin TEXT
#include "engine/tokenizer.h"
#include "formats/mapped_file.h"
#include "formats/tokenizer_file.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

template <class T>
T must(mnm::Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
}

} // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (argc != 3) {
        std::fputs("usage: tokenizer_bench TOKENIZER TEXT [--benchmark_...]\n", stderr);
        return 2;
    }
    const auto bytes = must(mnm::MappedFile::open(argv[1]));
    const mnm::Tokenizer tokenizer(must(mnm::parse_tokenizer(bytes->bytes(), argv[1])));
    const auto file = must(mnm::MappedFile::open(argv[2]));
    const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                                file->bytes().size());
    benchmark::RegisterBenchmark("encode", [&](benchmark::State& state) {
        std::vector<mnm::TokenId> ids;
        for (auto _ : state) {
            ids.clear();
            tokenizer.encode(text, ids);
            benchmark::DoNotOptimize(ids.data());
        }
        state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
        state.counters["tokens"] = static_cast<double>(ids.size());
    })->Unit(benchmark::kMillisecond);
    benchmark::RunSpecifiedBenchmarks();
}
