// SPDX-License-Identifier: MIT
// Scoring rows of tokens; every sum in double, in the order of the tokens.
#include "engine/evaluate.h"

#include "engine/analysis/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

namespace mnm {
namespace {

std::size_t first_maximum(std::span<const float> x) {
    return static_cast<std::size_t>(std::max_element(x.begin(), x.end()) - x.begin());
}

/// What one position says, filled in by the two models one after the other.
struct Position {
    double loss = 0;
    double reference_loss = 0;
    double kl_bits = 0;
    bool agrees = false;
};

/// Copies each token's logits into `all`, [tokens][V].
auto keep(std::vector<float>& all, std::size_t vocab) {
    return [&all, vocab](std::size_t i, std::span<const float> logits) {
        std::copy(logits.begin(), logits.end(), all.data() + i * vocab);
    };
}

double quantile(const std::vector<double>& sorted, double f) {
    const double place = f * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Adds rows of `length` tokens cut from ids; counted(i) tells whether token i may be a target.
template <class Id, class Counted>
void cut_rows(std::size_t tokens, std::size_t length, std::optional<std::uint64_t> limit,
              const Id& id, const Counted& counted, std::vector<EvaluationRow>& rows) {
    const std::size_t most = limit ? static_cast<std::size_t>(*limit) : tokens;
    for (std::size_t start = 0; start + 1 < tokens && rows.size() < most; start += length) {
        const std::size_t count = std::min(length, tokens - 1 - start);
        if (count < length && !rows.empty()) break;
        EvaluationRow row;
        for (std::size_t i = start; i < start + count; ++i) {
            row.inputs.push_back(id(i));
            row.targets.push_back(id(i + 1));
            row.counted.push_back(counted(i + 1) ? 1 : 0);
        }
        rows.push_back(std::move(row));
    }
}

Result<std::vector<EvaluationRow>> checked(std::vector<EvaluationRow> rows,
                                           const std::string& name) {
    for (const EvaluationRow& row : rows) {
        if (std::find(row.counted.begin(), row.counted.end(), 1) != row.counted.end()) return rows;
    }
    return Error{fmt::format(
        "{}: no token to score; expected at least two tokens, one of them a target", name)};
}

} // namespace

Result<std::vector<EvaluationRow>> evaluation_rows(const TokenStream& stream,
                                                   const ModelConfig& config,
                                                   std::uint64_t tokenizer_hash,
                                                   std::optional<std::uint64_t> row_limit) {
    const std::string& name = stream.mapping->path();
    if (stream.vocab != config.vocab) {
        return Error{fmt::format("{}: vocabulary {} found, the model has {}", name, stream.vocab,
                                 config.vocab)};
    }
    if (stream.tokenizer_hash != 0 && tokenizer_hash != 0 &&
        stream.tokenizer_hash != tokenizer_hash) {
        return Error{fmt::format("{}: made with tokenizer {:016x}, the model has {:016x}", name,
                                 stream.tokenizer_hash, tokenizer_hash)};
    }
    if (stream.block > config.context) {
        return Error{fmt::format("{}: packed in rows of {} tokens, the model's context is {}", name,
                                 stream.block, config.context)};
    }
    const std::size_t length = stream.block != 0 ? stream.block : config.context;
    const std::uint16_t mask = stream.chat ? 0x7FFF : 0xFFFF;
    const std::span<const std::uint16_t> tokens = stream.tokens;
    std::vector<EvaluationRow> rows;
    cut_rows(
        tokens.size(), length, row_limit,
        [&](std::size_t i) { return static_cast<TokenId>(tokens[i] & mask); },
        [&](std::size_t i) { return !stream.chat || (tokens[i] & TokenStream::target_bit) != 0; },
        rows);
    return checked(std::move(rows), name);
}

Result<std::vector<EvaluationRow>> evaluation_rows(std::span<const TokenId> tokens,
                                                   const ModelConfig& config,
                                                   std::optional<std::uint64_t> row_limit) {
    std::vector<EvaluationRow> rows;
    cut_rows(
        tokens.size(), config.context, row_limit, [&](std::size_t i) { return tokens[i]; },
        [](std::size_t) { return true; }, rows);
    return checked(std::move(rows), "text");
}

std::size_t evaluation_piece(std::uint64_t vocab) {
    return std::clamp<std::size_t>((std::size_t{2} << 20) / vocab, 16, 256);
}

Result<Evaluation> evaluate(const Model& model, Session& session, const ReferenceLogits& reference,
                            const Tokenizer* tokenizer, const std::vector<EvaluationRow>& rows,
                            Parallel& parallel,
                            const std::function<void(std::size_t, std::size_t)>& progress) {
    using Clock = std::chrono::steady_clock;
    const std::size_t vocab = model.config().vocab;
    Evaluation result;
    Evaluation::Divergence divergence;
    std::vector<double> kl;
    std::uint64_t inputs = 0, agreeing = 0;
    double loss = 0;
    const std::size_t piece = evaluation_piece(vocab);
    std::vector<float> ours(piece * vocab);
    std::vector<Position> positions(piece);

    for (std::size_t r = 0; r < rows.size(); ++r) {
        const EvaluationRow& row = rows[r];
        session.rewind(0);
        double row_loss = 0;
        std::uint64_t row_targets = 0;
        for (std::size_t start = 0; start < row.inputs.size(); start += piece) {
            const std::size_t count = std::min(piece, row.inputs.size() - start);
            const std::span<const TokenId> tokens(row.inputs.data() + start, count);
            const auto began = Clock::now();
            MNM_CHECK(session.forward_all(tokens, keep(ours, vocab)));
            result.seconds += std::chrono::duration<double>(Clock::now() - began).count();
            const float* theirs = nullptr;
            if (reference) {
                MNM_TRY(theirs, reference(r, start, count));
            }

            parallel.for_ranges(count, 1, [&](std::size_t begin, std::size_t end, unsigned) {
                for (std::size_t i = begin; i < end; ++i) {
                    if (row.counted[start + i] == 0) continue;
                    const TokenId target = row.targets[start + i];
                    const std::span<const float> q(ours.data() + i * vocab, vocab);
                    const double q_log_sum = log_sum_exp(q);
                    positions[i].loss = q_log_sum - q[target];
                    if (theirs == nullptr) continue;
                    const std::span<const float> p(theirs + i * vocab, vocab);
                    const double p_log_sum = log_sum_exp(p);
                    positions[i].reference_loss = p_log_sum - p[target];
                    positions[i].kl_bits = divergence_bits(p, p_log_sum, q, q_log_sum);
                    positions[i].agrees = first_maximum(p) == first_maximum(q);
                }
            });
            for (std::size_t i = 0; i < count; ++i) {
                if (row.counted[start + i] == 0) continue;
                row_loss += positions[i].loss;
                ++row_targets;
                if (tokenizer != nullptr && !tokenizer->is_special(row.targets[start + i])) {
                    result.target_bytes += tokenizer->bytes(row.targets[start + i]).size();
                }
                if (theirs == nullptr) continue;
                divergence.reference_loss_nats += positions[i].reference_loss;
                agreeing += positions[i].agrees ? 1 : 0;
                kl.push_back(positions[i].kl_bits);
            }
            inputs += count;
        }
        if (!std::isfinite(row_loss)) {
            return Error{fmt::format("{}: the loss of row {} is {}; expected a finite number",
                                     model.file().path(), r, row_loss)};
        }
        result.targets += row_targets;
        loss += row_loss;
        result.row_loss_nats.push_back(
            row_targets == 0 ? 0 : row_loss / static_cast<double>(row_targets));
        if (progress) progress(r + 1, rows.size());
    }

    const auto targets = static_cast<double>(result.targets);
    result.loss_nats = loss / targets;
    result.perplexity = std::exp(result.loss_nats);
    if (result.target_bytes > 0) {
        result.bits_per_byte = loss / std::numbers::ln2 / static_cast<double>(result.target_bytes);
    }
    result.tokens_per_second = static_cast<double>(inputs) / result.seconds;
    if (reference) {
        double sum = 0;
        for (const double v : kl)
            sum += v;
        std::sort(kl.begin(), kl.end());
        divergence.kl_mean = sum / targets;
        divergence.kl_p99 = quantile(kl, 0.99);
        divergence.kl_max = kl.back();
        divergence.top1_agreement = static_cast<double>(agreeing) / targets;
        divergence.reference_loss_nats /= targets;
        result.divergence = divergence;
    }
    return result;
}

Result<Evaluation> evaluate(const Model& model, const Model* reference, const Tokenizer* tokenizer,
                            const std::vector<EvaluationRow>& rows, const kernels::Kernels& kernels,
                            Parallel& parallel,
                            const std::function<void(std::size_t, std::size_t)>& progress,
                            CacheType cache) {
    const std::size_t vocab = model.config().vocab;
    if (reference != nullptr && reference->config().vocab != vocab) {
        return Error{fmt::format("{}: vocabulary {} found, {} has {}", reference->file().path(),
                                 reference->config().vocab, model.file().path(), vocab)};
    }
    for (const EvaluationRow& row : rows) {
        if (reference == nullptr || row.inputs.size() <= reference->config().context) continue;
        return Error{fmt::format("{}: a context of {} found, expected at least the {} of {}",
                                 reference->file().path(), reference->config().context,
                                 row.inputs.size(), model.file().path())};
    }
    MNM_TRY(Session session, Session::create(model, kernels, parallel, cache));
    if (reference == nullptr)
        return evaluate(model, session, {}, tokenizer, rows, parallel, progress);
    MNM_TRY(Session other, Session::create(*reference, kernels, parallel));
    std::vector<float> theirs(evaluation_piece(vocab) * vocab);
    const auto logits = [&](std::size_t row, std::size_t start,
                            std::size_t count) -> Result<const float*> {
        if (start == 0) other.rewind(0);
        MNM_CHECK(other.forward_all({rows[row].inputs.data() + start, count}, keep(theirs, vocab)));
        return theirs.data();
    };
    return evaluate(model, session, logits, tokenizer, rows, parallel, progress);
}

} // namespace mnm
