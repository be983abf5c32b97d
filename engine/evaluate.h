// SPDX-License-Identifier: MIT
// Loss, perplexity and the divergence between two models, on the same tokens.
#pragma once

#include "engine/model.h"
#include "engine/parallel.h"
#include "engine/session.h"
#include "engine/tokenizer.h"
#include "formats/result.h"
#include "formats/token_stream.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace mnm {

/// Rows to be scored: each starts from an empty cache.
struct EvaluationRow {
    std::vector<TokenId> inputs;
    std::vector<TokenId> targets;      ///< targets[i] follows inputs[i]
    std::vector<std::uint8_t> counted; ///< 1 where the target counts in the loss
};

/// Cuts a token stream into rows of the model's context (a shorter last row is dropped when another
/// row is there; a chat file's block is one row).
/// Errors: vocabulary or tokenizer hash of stream and model differ, fewer than two tokens, no
/// target.
Result<std::vector<EvaluationRow>> evaluation_rows(const TokenStream& stream,
                                                   const ModelConfig& config,
                                                   std::uint64_t tokenizer_hash,
                                                   std::optional<std::uint64_t> row_limit);
/// The same for plain text: <|bos|> and the text's tokens, in rows of the model's context.
Result<std::vector<EvaluationRow>> evaluation_rows(std::span<const TokenId> tokens,
                                                   const ModelConfig& config,
                                                   std::optional<std::uint64_t> row_limit);

/// All sums in double.
struct Evaluation {
    std::uint64_t targets = 0;
    double loss_nats = 0;              ///< mean over targets
    std::vector<double> row_loss_nats; ///< mean over each row's targets
    double perplexity = 0;             ///< exp(loss_nats)
    std::uint64_t target_bytes = 0;    ///< UTF-8 bytes the counted targets spell
    double bits_per_byte = 0;          ///< 0 when no tokenizer is known
    double seconds = 0;
    double tokens_per_second = 0; ///< inputs evaluated by the model alone

    /// Against a reference p, for each counted position: KL(p || q) in bits.
    struct Divergence {
        double kl_mean = 0;
        double kl_p99 = 0; ///< linear interpolation between order statistics
        double kl_max = 0;
        double top1_agreement = 0; ///< share of positions where both have the same first maximum
        double reference_loss_nats = 0;
    };
    std::optional<Divergence> divergence;
};

/// Both models run side by side; nothing is kept of the logits. `reference` and `tokenizer` may be
/// null. `cache` is the model's; the reference has floats. `progress(done, total)` is called after
/// each row. Errors: shapes of the two models that cannot be compared (vocabulary, context), a loss
/// that is not a number (the row is named).
Result<Evaluation> evaluate(const Model& model, const Model* reference, const Tokenizer* tokenizer,
                            const std::vector<EvaluationRow>& rows, const kernels::Kernels& kernels,
                            Parallel& parallel,
                            const std::function<void(std::size_t, std::size_t)>& progress,
                            CacheType cache = CacheType::f32);

/// The reference's logits [count][V] after the tokens [start, start + count) of a row, valid until
/// the next call. Asked for once each, in order.
using ReferenceLogits =
    std::function<Result<const float*>(std::size_t row, std::size_t start, std::size_t count)>;
/// Tokens whose logits are held at a time: about 8 MB of them, whatever the context. A multiple of
/// it is where each piece asked of ReferenceLogits starts.
std::size_t evaluation_piece(std::uint64_t vocab);

/// The same for a session that is there already (of `model`, with an observer perhaps) and any
/// source of reference logits, which may be empty.
Result<Evaluation> evaluate(const Model& model, Session& session, const ReferenceLogits& reference,
                            const Tokenizer* tokenizer, const std::vector<EvaluationRow>& rows,
                            Parallel& parallel,
                            const std::function<void(std::size_t, std::size_t)>& progress);

} // namespace mnm
