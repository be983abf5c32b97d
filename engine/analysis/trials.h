// SPDX-License-Identifier: MIT
// Scoring many variants of one model against it, on the same rows of tokens.
#pragma once

#include "engine/evaluate.h"
#include "engine/model.h"
#include "engine/observer.h"
#include "engine/parallel.h"
#include "formats/result.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mnm {

struct Score {
    double loss_nats = 0;
    double perplexity = 0;
    double kl_bits = 0; ///< mean over the targets, KL(reference || variant)
    double top1_agreement = 0;
};

/// Borrows the reference, rows, kernels and threads. The reference's logits are computed once and
/// kept where they fit `memory` bytes, and again for every variant where they do not: the figures
/// are the same.
class Trials {
  public:
    static constexpr std::size_t default_memory = std::size_t{256} << 20;

    /// Errors: not enough memory, the reference's logits are not finite.
    static Result<Trials> create(const Model& reference, const std::vector<EvaluationRow>& rows,
                                 const kernels::Kernels& kernels, Parallel& parallel,
                                 std::size_t memory = default_memory);
    Trials(Trials&&) noexcept;
    ~Trials();

    /// The reference's own loss.
    const Evaluation& reference() const { return reference_; }
    /// A variant: another model of the same shape, and an observer that may change what flows
    /// through it (null: nobody). Errors: what evaluate() gives.
    Result<Score> score(const Model& variant, Observer* observer = nullptr);
    /// A run of the model for the sake of its observer.
    Result<void> watch(const Model& model, Observer& observer);

  private:
    struct State;
    Trials() = default;
    std::unique_ptr<State> state_;
    Evaluation reference_;
};

} // namespace mnm
