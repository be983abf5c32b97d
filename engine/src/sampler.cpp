// SPDX-License-Identifier: MIT
// Drawing the next token without sorting the vocabulary.
#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace mnm {
namespace {

/// Logits past this are as good as infinite; differences of two within it are finite.
constexpr float largest_logit = 1e38F;

bool usual(std::span<const float> logits) {
    unsigned bad = 0; // no early exit, so that the loop becomes vector code
    for (const float x : logits)
        bad |= std::fabs(x) <= largest_logit ? 0U : 1U;
    return bad == 0;
}

/// NaN and -inf become the least likely, +inf the most likely.
float tame(float x) {
    if (x > largest_logit) return largest_logit;
    return x >= -largest_logit ? x : -largest_logit;
}

/// The largest of each block. Eight lanes, because one running maximum would wait for itself.
std::vector<float> block_maxima(std::span<const float> p, std::size_t block) {
    std::vector<float> maxima;
    maxima.reserve(p.size() / block + 1);
    for (std::size_t begin = 0; begin < p.size(); begin += block) {
        const std::span<const float> part = p.subspan(begin, std::min(block, p.size() - begin));
        float lane[8] = {};
        std::size_t i = 0;
        for (; i + 8 <= part.size(); i += 8) {
            for (std::size_t j = 0; j < 8; ++j) {
                lane[j] = part[i + j] > lane[j] ? part[i + j] : lane[j];
            }
        }
        for (; i < part.size(); ++i)
            lane[0] = std::max(lane[0], part[i]);
        maxima.push_back(*std::max_element(lane, lane + 8));
    }
    return maxima;
}

/// The `count` most likely tokens, best first, ties by id; fewer if the rest have probability 0.
///
/// `count` blocks have a member of at least the count-th largest block maximum. So nothing below
/// that is wanted, and only blocks that reach it need to be looked into.
void most_likely(std::span<const float> p, std::size_t count, std::vector<TokenId>& ids) {
    std::size_t block = 64;
    while (block > 8 && p.size() / block < 4 * count)
        block /= 2;
    const std::vector<float> maxima = block_maxima(p, block);
    float threshold = 0;
    if (maxima.size() > count) {
        std::vector<float> ranked = maxima;
        const auto nth = ranked.begin() + static_cast<std::ptrdiff_t>(count - 1);
        std::nth_element(ranked.begin(), nth, ranked.end(), std::greater<>());
        threshold = *nth;
    }
    ids.clear();
    std::size_t ties = 0; // of the tokens just at the threshold, the first ones are enough
    for (std::size_t b = 0; b < maxima.size(); ++b) {
        if (maxima[b] < threshold) continue;
        const std::size_t end = std::min(p.size(), (b + 1) * block);
        for (std::size_t i = b * block; i < end; ++i) {
            if (p[i] < threshold || p[i] <= 0) continue;
            if (p[i] > threshold || ++ties <= count) ids.push_back(static_cast<TokenId>(i));
        }
    }
    const auto better = [p](TokenId a, TokenId b) { return p[a] != p[b] ? p[a] > p[b] : a < b; };
    if (ids.size() > count) {
        const auto last = ids.begin() + static_cast<std::ptrdiff_t>(count);
        std::nth_element(ids.begin(), last, ids.end(), better);
        ids.resize(count);
    }
    std::sort(ids.begin(), ids.end(), better);
}

/// The one of `ids` at which the running sum passes `mark`; the last if rounding keeps it below.
TokenId pick(std::span<const float> p, std::span<const TokenId> ids, double mark) {
    double sum = 0;
    for (const TokenId id : ids) {
        sum += static_cast<double>(p[id]);
        if (sum > mark) return id;
    }
    return ids.empty() ? 0 : ids.back();
}

/// Draws from the whole vocabulary, in the order of ids.
TokenId pick_any(std::span<const float> p, Random& random) {
    double total = 0;
    for (const float x : p)
        total += static_cast<double>(x);
    const double mark = random.uniform() * total;
    double sum = 0;
    TokenId last = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (p[i] <= 0) continue;
        last = static_cast<TokenId>(i);
        sum += static_cast<double>(p[i]);
        if (sum > mark) break;
    }
    return last;
}

} // namespace

Sampler::Sampler(const SamplerOptions& options, const kernels::Kernels& kernels)
    : options_(options), kernels_(&kernels), random_(options.seed) {}

TokenId Sampler::sample(std::span<const float> logits) {
    const std::size_t n = logits.size();
    if (n == 0) return 0;
    probabilities_.resize(n);
    if (!usual(logits)) {
        std::transform(logits.begin(), logits.end(), probabilities_.begin(), tame);
        logits = probabilities_;
    }
    // A temperature so low that its reciprocal is no float is as good as 0; so is no number at all.
    const auto scale = static_cast<float>(1 / options_.temperature);
    if (!(options_.temperature > 0) || !std::isfinite(scale)) {
        return static_cast<TokenId>(kernels_->argmax(logits.data(), n));
    }
    const float total = kernels_->softmax(logits.data(), n, scale, probabilities_.data());
    const std::span<const float> p = probabilities_;
    const bool nucleus = options_.top_p < 1;
    const std::size_t top_k = options_.top_k;
    if (top_k == 0 && !nucleus) return pick_any(p, random_);

    const double wanted = static_cast<double>(total) * options_.top_p;
    // With top_k off, 256 hold the nucleus as a rule; where they do not, more are sorted.
    for (std::size_t count = top_k > 0 ? top_k : 256;; count *= 8) {
        most_likely(p, count, candidates_);
        double mass = 0;
        std::size_t kept = 0;
        while (kept < candidates_.size() && (kept == 0 || !nucleus || mass < wanted)) {
            mass += static_cast<double>(p[candidates_[kept++]]);
        }
        if (top_k == 0 && mass < wanted && candidates_.size() == count) continue;
        return pick(p, std::span(candidates_).first(kept), random_.uniform() * mass);
    }
}

} // namespace mnm
