// SPDX-License-Identifier: MIT
// Models for engine tests, and running a text through one.
#pragma once

#include "engine/model.h"
#include "engine/parallel.h"
#include "engine/session.h"
#include "kernels/kernels.h"
#include "tests/formats/synthetic.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace mnm::tests {

template <class T>
T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
}
inline void must(Result<void> result) {
    if (!result) throw std::runtime_error(result.error().message);
}

/// Shapes that leave remainders everywhere: heads of 24, 3 heads to a key/value head, a vocabulary
/// and a feed-forward width that no tile divides, a context longer than one key block.
inline ModelConfig odd_config() {
    ModelConfig c;
    c.layers = 2;
    c.width = 288;
    c.heads = 12;
    c.kv_heads = 4;
    c.head_dim = 24;
    c.ffn = 416;
    c.vocab = 333;
    c.context = 160;
    return c;
}

/// A random model in one weight type; the folder must outlive it.
inline Model random_model(const TempFolder& folder, const ModelConfig& config, WeightType type,
                          std::uint64_t seed = 1) {
    const std::string name = std::string(codec(type).name) + std::to_string(seed);
    const std::string ckpt = write_random_checkpoint(folder / (name + ".ckpt"), config, seed);
    const ModelFile source = must(open_model(ckpt));
    const std::string path = folder / (name + ".mnm");
    must(write_model(path, "mnm1", source, codec(type)));
    return must(Model::open(path));
}

inline std::vector<TokenId> some_tokens(std::size_t count, std::uint64_t vocab) {
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < count; ++i)
        ids.push_back(static_cast<TokenId>((i * 37 + 11) % vocab));
    return ids;
}

/// Logits after every token, [tokens][V], the text cut into calls of `batch`.
inline std::vector<float> all_logits(const Model& model, const std::string& level, unsigned threads,
                                     std::size_t batch, const std::vector<TokenId>& ids,
                                     CacheType cache = CacheType::f32) {
    Parallel parallel(threads);
    Session session = must(Session::create(model, *kernels::find(level), parallel, cache));
    std::vector<float> out;
    for (std::size_t done = 0; done < ids.size(); done += batch) {
        const std::size_t count = std::min(batch, ids.size() - done);
        must(session.forward_all({ids.data() + done, count},
                                 [&](std::size_t, std::span<const float> logits) {
                                     out.insert(out.end(), logits.begin(), logits.end());
                                 }));
    }
    return out;
}

} // namespace mnm::tests
