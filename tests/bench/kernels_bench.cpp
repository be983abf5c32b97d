// SPDX-License-Identifier: MIT
// Each kernel at each usable level, one thread: ns, weight bytes per second, multiply-adds per
// second. The shapes are those of a 126M model: 768 wide, 2048 inside, heads of 64, V 32768.
#include "kernels/kernels.h"
#include "tests/kernels/level_under_test.h"

#include <benchmark/benchmark.h>

#include <string>

using namespace mnm::kernels;
using mnm::tests::Fill;
using mnm::tests::floats;
using mnm::tests::Guarded;

namespace {

constexpr std::size_t cols = 768, rows = 16384;

std::vector<std::int8_t> random_bytes(std::size_t n) {
    std::mt19937 engine(1);
    std::vector<std::int8_t> q(n);
    for (auto& v : q)
        v = static_cast<std::int8_t>(static_cast<int>(engine() % 255) - 127);
    return q;
}

void count(benchmark::State& state, double bytes, double products) {
    state.counters["read_B/s"] = benchmark::Counter(
        bytes, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::OneK::kIs1000);
    state.counters["MAC/s"] = benchmark::Counter(
        products, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::OneK::kIs1000);
}

struct Inputs {
    explicit Inputs(std::size_t tokens)
        : x(floats(tokens * cols, Fill::random, 2)), q(tokens * cols), scale(tokens * cols / group),
          sum(tokens * cols / group), y(tokens * rows),
          scratch(matmul_scratch(cols)), quantized{q.data(), scale.data(), sum.data(), tokens,
                                                   cols} {
        best().quantize(x.data(), x.size(), q.data(), scale.data(), sum.data());
    }
    std::vector<float> x;
    std::vector<std::int8_t> q;
    std::vector<float> scale;
    std::vector<std::int32_t> sum;
    std::vector<float> y;
    Guarded<std::byte> scratch;
    QuantizedRows quantized;
};

void q8(benchmark::State& state, const Kernels* k) {
    const auto tokens = static_cast<std::size_t>(state.range(0));
    const auto w = random_bytes(rows * cols);
    const auto scale = floats(rows, Fill::random, 3);
    Inputs in(tokens);
    for (auto _ : state) {
        k->matmul_q8(w.data(), scale.data(), 0, rows, in.quantized, {in.y.data(), rows, false},
                     in.scratch.data());
    }
    count(state, rows * cols, static_cast<double>(rows * cols * tokens));
}

void q4(benchmark::State& state, const Kernels* k) {
    const auto tokens = static_cast<std::size_t>(state.range(0));
    const auto w = random_bytes(rows * cols / 2);
    const auto scale = floats(rows * cols / group, Fill::random, 3);
    Inputs in(tokens);
    for (auto _ : state) {
        k->matmul_q4(reinterpret_cast<const std::uint8_t*>(w.data()), scale.data(), 0, rows,
                     in.quantized, {in.y.data(), rows, false}, in.scratch.data());
    }
    count(state, rows * cols * 0.625, static_cast<double>(rows * cols * tokens));
}

void f32(benchmark::State& state, const Kernels* k) {
    const auto tokens = static_cast<std::size_t>(state.range(0));
    const auto w = floats(rows * cols, Fill::random, 3);
    Inputs in(tokens);
    for (auto _ : state) {
        k->matmul_f32(w.data(), 0, rows, {in.x.data(), tokens, cols}, {in.y.data(), rows, false},
                      in.scratch.data());
    }
    count(state, rows * cols * 4.0, static_cast<double>(rows * cols * tokens));
}

/// A group of three query heads of 64 over one full key block; the argument is the cache's type.
void attend(benchmark::State& state, const Kernels* k) {
    const std::size_t heads = 3, dim = 64;
    const auto type = static_cast<CacheType>(state.range(0));
    const auto q = floats(heads * dim, Fill::random, 4);
    const auto numbers = floats(2 * key_block * dim, Fill::random, 5);
    const std::size_t width = type == CacheType::f32 ? 4 : type == CacheType::f16 ? 2 : 1;
    const std::size_t bytes = numbers.size() * width;
    Guarded<std::byte> cache(bytes);
    std::vector<float> scales(2 * key_block), out(heads * (dim + 2));
    for (std::size_t j = 0; j < 2 * key_block; ++j)
        scales[j] = k->cache_put(&numbers[j * dim], dim, type, cache.data() + j * dim * width, 1);
    const AttentionState part{&out[heads * dim], &out[heads * (dim + 1)], out.data()};
    const AttentionBlock block{q.data(),     type,
                               cache.data(), cache.data() + key_block * dim * width,
                               &scales[0],   &scales[key_block],
                               heads,        key_block,
                               dim,          0.125f,
                               false,        nullptr,
                               nullptr};
    // Joined, as all blocks but a text's first are; to something finite.
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = 1.0f;
    for (auto _ : state) {
        k->attend(block, part);
        benchmark::ClobberMemory();
    }
    count(state, static_cast<double>(bytes), 2.0 * heads * key_block * dim);
}

/// The peak that the products' rates are to be compared with.
void dot_loop(benchmark::State& state, const Kernels* k) {
    double products = 0;
    for (auto _ : state)
        products += static_cast<double>(k->dot_loop(1000000));
    state.counters["MAC/s"] = benchmark::Counter(products, benchmark::Counter::kIsRate,
                                                 benchmark::Counter::OneK::kIs1000);
}

/// What the kernels on single vectors work on.
struct Vectors {
    std::vector<float> x = floats(2048, Fill::random, 7), w = floats(2048, Fill::random, 8);
    std::vector<float> y = std::vector<float>(2048);
    std::vector<std::byte> bytes = std::vector<std::byte>(64 * 256);
    std::vector<std::int8_t> q = std::vector<std::int8_t>(2048);
    std::vector<float> scale = std::vector<float>(64), states = std::vector<float>(512);
    std::vector<std::int32_t> sum = std::vector<std::int32_t>(64);
    AttentionState state(std::size_t i) { // of three heads of 64
        return {&states[256 * i + 192], &states[256 * i + 208], &states[256 * i]};
    }
    void put(const Kernels& k, CacheType type) { // a key, side by side with 63 others
        benchmark::DoNotOptimize(k.cache_put(x.data(), 64, type, bytes.data(), key_block));
    }
};

struct VectorKernel {
    const char* name;
    void (*run)(const Kernels& k, Vectors& v);
};
constexpr VectorKernel vector_kernels[] = {
    {"rmsnorm_768",
     [](auto& k, auto& v) { k.rmsnorm(v.x.data(), v.w.data(), 768, 1e-5f, v.y.data()); }},
    {"rope_64", [](auto& k, auto& v) { k.rope(v.y.data(), 64, v.w.data()); }},
    {"swiglu_2048", [](auto& k, auto& v) { k.swiglu(v.x.data(), v.w.data(), 2048, v.y.data()); }},
    {"quantize_2048",
     [](auto& k, auto& v) {
         k.quantize(v.x.data(), 2048, v.q.data(), v.scale.data(), v.sum.data());
     }},
    {"cache_put_64_f32", [](auto& k, auto& v) { v.put(k, CacheType::f32); }},
    {"cache_put_64_f16", [](auto& k, auto& v) { v.put(k, CacheType::f16); }},
    {"cache_put_64_q8", [](auto& k, auto& v) { v.put(k, CacheType::q8); }},
    {"attend_merge_3_heads",
     [](auto& k, auto& v) { k.attend_merge(v.state(0), v.state(1), 3, 64); }},
    {"attend_finish_3_heads",
     [](auto& k, auto& v) { k.attend_finish(v.state(1), 3, 64, v.y.data()); }},
    {"softmax_2048",
     [](auto& k, auto& v) {
         benchmark::DoNotOptimize(k.softmax(v.x.data(), 2048, 1.0f, v.y.data()));
     }},
    {"exp_2048", [](auto& k, auto& v) { k.exp(v.x.data(), 2048, v.y.data()); }},
    {"argmax_2048", [](auto& k, auto& v) { benchmark::DoNotOptimize(k.argmax(v.x.data(), 2048)); }},
    {"fit_q4_32",
     [](auto& k, auto& v) { k.fit_q4(v.x.data(), 3.0f, 3.0f, &v.scale[0], &v.scale[1]); }},
    {"sum_words_2048",
     [](auto& k, auto& v) {
         const void* words = v.bytes.data();
         benchmark::DoNotOptimize(k.sum_words(static_cast<const std::uint64_t*>(words), 2048));
     }},
};

void on_vectors(benchmark::State& state, const Kernels* k) {
    const VectorKernel& kernel = vector_kernels[state.range(0)];
    Vectors vectors;
    for (float& value : vectors.states)
        value = 1.0f;
    for (auto _ : state) {
        kernel.run(*k, vectors);
        benchmark::ClobberMemory();
    }
}

} // namespace

int main(int argc, char** argv) {
    for (const std::string& level : usable_levels()) {
        const Kernels* k = find(level);
        const auto add = [&](const std::string& name, auto* function) {
            return benchmark::RegisterBenchmark((level + "/" + name).c_str(), function, k);
        };
        const bool slow = level == "ref";
        for (const auto& [name, function] :
             {std::pair{"q8", &q8}, std::pair{"q4", &q4}, std::pair{"f32", &f32}}) {
            auto* registered = add(name, function)->Arg(1)->Unit(benchmark::kMicrosecond);
            if (!slow) registered->Arg(7)->Arg(64)->Arg(256);
        }
        add("dot_loop", dot_loop);
        for (const int type : {0, 1, 2})
            add("attend_64_keys_3_heads", attend)->Arg(type);
        for (std::size_t i = 0; i < std::size(vector_kernels); ++i)
            add(vector_kernels[i].name, on_vectors)->Arg(static_cast<std::int64_t>(i));
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
