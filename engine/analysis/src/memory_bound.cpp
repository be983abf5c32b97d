// SPDX-License-Identifier: MIT
// Bytes that decoding reads.
#include "engine/analysis/memory_bound.h"

namespace mnm {
namespace {

/// Every matrix once, one row of an embedding that is no head, norms.
double decoded_bytes(const ModelFile& file, const Codec& codec) {
    double bytes = 0;
    for (const TensorView& tensor : file.tensors) {
        const Codec& to = tensor.rows == 1 ? mnm::codec(WeightType::f32) : codec;
        const bool one_row = tensor.name == "token_embd.weight" && !file.details.config.tied_head;
        const double rows = one_row ? 1 : static_cast<double>(tensor.rows);
        bytes += rows * static_cast<double>(to.data_row_bytes(tensor.cols) +
                                            to.scale_row_bytes(tensor.cols));
    }
    return bytes;
}

} // namespace

double weight_bytes(double weights, double bits) {
    return weights * bits / 8;
}

double cache_bytes_per_token(double layers, double kv_heads, double head_dim, double bits) {
    return 2 * layers * kv_heads * head_dim * bits / 8;
}

double decode_bound(double bandwidth, double weights, double cache) {
    return bandwidth / (weights + cache);
}

double overtaking_context(double weights, double cache_per_token) {
    return weights / cache_per_token;
}

MemoryStudy study_memory(const ModelFile& file, double bandwidth, std::optional<double> other) {
    const ModelConfig& c = file.details.config;
    MemoryStudy study;
    study.bandwidth = bandwidth;
    study.other_bandwidth = other;
    study.context = c.context;
    for (const double times : {0.25, 0.5, 1.0, 2.0, 4.0, 16.0})
        study.contexts.push_back(times * static_cast<double>(c.context));
    const auto head_dim = static_cast<double>(c.head_dim);
    const double scales = 32.0 * static_cast<double>((c.head_dim + 31) / 32) / head_dim;
    const struct {
        const char* name;
        double bits;
    } caches[] = {{"f32", 32}, {"q8", 8 + scales}, {"q4", 4 + scales}};
    for (const WeightType type : {WeightType::f32, WeightType::q8, WeightType::q4}) {
        for (const auto& cache : caches) {
            MemoryCase one;
            one.weights = codec(type).name;
            one.cache = cache.name;
            one.weight_bytes = decoded_bytes(file, codec(type));
            one.cache_bytes_per_token =
                cache_bytes_per_token(static_cast<double>(c.layers),
                                      static_cast<double>(c.kv_heads), head_dim, cache.bits);
            one.overtaking_context =
                overtaking_context(one.weight_bytes, one.cache_bytes_per_token);
            for (const double context : study.contexts) {
                const double bytes = context * one.cache_bytes_per_token;
                one.bounds.push_back(decode_bound(bandwidth, one.weight_bytes, bytes));
                if (other)
                    one.other_bounds.push_back(decode_bound(*other, one.weight_bytes, bytes));
            }
            study.cases.push_back(std::move(one));
        }
    }
    return study;
}

} // namespace mnm
