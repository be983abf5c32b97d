// SPDX-License-Identifier: MIT
// Drawing the next token. Repeats exactly for a seed, on every platform.
#pragma once

#include "engine/tokenizer.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <span>
#include <vector>

namespace mnm {

/// xoshiro256** seeded through splitmix64 (Blackman and Vigna, public domain description).
class Random {
  public:
    explicit Random(std::uint64_t seed);
    std::uint64_t next();
    /// In [0, 1), 53 bits.
    double uniform();

  private:
    std::uint64_t state_[4];
};

struct SamplerOptions {
    double temperature = 0.7; ///< 0: the first maximum
    double top_p = 0.9;       ///< 1: off
    std::uint32_t top_k = 64; ///< 0: off
    std::uint64_t seed = 0;
};

/// Temperature over the whole vocabulary, the top_k most likely, then the smallest set whose
/// probability (of the whole softmax) reaches top_p; draws one. Ties go to the lower id.
class Sampler {
  public:
    Sampler(const SamplerOptions& options, const kernels::Kernels& kernels);
    TokenId sample(std::span<const float> logits);
    SamplerOptions& options() { return options_; }

  private:
    SamplerOptions options_;
    const kernels::Kernels* kernels_;
    Random random_;
    std::vector<float> probabilities_;
    std::vector<TokenId> candidates_;
};

} // namespace mnm
