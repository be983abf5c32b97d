// SPDX-License-Identifier: MIT
// Scoring variants against logits that are kept, or made again.
#include "engine/analysis/trials.h"

#include "engine/src/zeroed.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mnm {

struct Trials::State {
    State(const Model& m, const std::vector<EvaluationRow>& r, const kernels::Kernels& k,
          Parallel& p)
        : model(m), rows(r), kernels(k), parallel(p), vocab(m.config().vocab) {}

    const Model& model;
    const std::vector<EvaluationRow>& rows;
    const kernels::Kernels& kernels;
    Parallel& parallel;
    std::size_t vocab;
    std::vector<std::size_t> first; ///< tokens before each row
    bool kept = false;
    std::unique_ptr<Floats> logits; ///< of all tokens when kept, of one piece otherwise
    std::optional<Session> session; ///< of the reference

    Result<const float*> piece(std::size_t row, std::size_t start, std::size_t count) {
        float* place = kept ? logits->data() + (first[row] + start) * vocab : logits->data();
        if (kept && !session) return place;
        if (start == 0) session->rewind(0);
        MNM_CHECK(session->forward_all({rows[row].inputs.data() + start, count},
                                       [&](std::size_t i, std::span<const float> x) {
                                           std::copy(x.begin(), x.end(), place + i * vocab);
                                       }));
        return place;
    }
};

Trials::Trials(Trials&&) noexcept = default;
Trials::~Trials() = default;

Result<Trials> Trials::create(const Model& reference, const std::vector<EvaluationRow>& rows,
                              const kernels::Kernels& kernels, Parallel& parallel,
                              std::size_t memory) {
    Trials trials;
    trials.state_ = std::make_unique<State>(reference, rows, kernels, parallel);
    State& s = *trials.state_;
    std::size_t tokens = 0;
    for (const EvaluationRow& row : rows) {
        s.first.push_back(tokens);
        tokens += row.inputs.size();
    }
    const std::size_t piece = evaluation_piece(s.vocab);
    s.kept = tokens <= memory / sizeof(float) / s.vocab;
    try {
        s.logits = std::make_unique<Floats>((s.kept ? tokens : piece) * s.vocab);
    } catch (const std::bad_alloc&) {
        return Error{fmt::format("{}: not enough memory for the logits of {} tokens",
                                 reference.file().path(), s.kept ? tokens : piece)};
    }
    MNM_TRY(Session session, Session::create(reference, kernels, parallel));
    s.session.emplace(std::move(session));
    if (s.kept) {
        for (std::size_t r = 0; r < rows.size(); ++r) {
            for (std::size_t start = 0; start < rows[r].inputs.size(); start += piece) {
                const std::size_t count = std::min(piece, rows[r].inputs.size() - start);
                MNM_TRY([[maybe_unused]] auto place, s.piece(r, start, count));
            }
        }
        s.session.reset();
    }
    MNM_TRY(Session own, Session::create(reference, kernels, parallel));
    MNM_TRY(trials.reference_, evaluate(reference, own, {}, nullptr, rows, parallel, {}));
    return trials;
}

Result<Score> Trials::score(const Model& variant, Observer* observer) {
    State& s = *state_;
    MNM_TRY(Session session, Session::create(variant, s.kernels, s.parallel));
    session.observe(observer);
    const auto logits = [&](std::size_t row, std::size_t start, std::size_t count) {
        return s.piece(row, start, count);
    };
    MNM_TRY(const Evaluation got,
            evaluate(variant, session, logits, nullptr, s.rows, s.parallel, {}));
    return Score{got.loss_nats, got.perplexity, got.divergence->kl_mean,
                 got.divergence->top1_agreement};
}

Result<void> Trials::watch(const Model& model, Observer& observer) {
    State& s = *state_;
    MNM_TRY(Session session, Session::create(model, s.kernels, s.parallel));
    session.observe(&observer);
    MNM_TRY([[maybe_unused]] const Evaluation ignored,
            evaluate(model, session, {}, nullptr, s.rows, s.parallel, {}));
    return {};
}

} // namespace mnm
