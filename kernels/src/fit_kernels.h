// SPDX-License-Identifier: MIT
// The search for a q4 scale, as a part of float_kernels.h: four candidates side by side, each in a
// quarter of the lanes.
#pragma once

/// Each candidate four times.
struct Candidates {
    float by[q4_candidates * 4];
    constexpr Candidates() noexcept : by() {
        for (size_t i = 0; i < q4_candidates * 4; ++i)
            by[i] = q4_candidate(i / 4);
    }
};
constexpr Candidates candidates;

void fit_q4(const float* w, float first, float max, float* inverse, float* scale) noexcept {
    Lanes weights[group / 4];
    for (size_t k = 0; k < group / 4; ++k)
        weights[k] = repeated(w + 4 * k);
    const Lanes magic = splat(12582912.0f);
    float most = -1.0f;
    for (size_t c = 0; c < q4_candidates; c += 4) {
        float factors[lanes], wqs[lanes], qqs[lanes], merits[lanes];
        for (size_t i = 0; i < lanes; ++i)
            factors[i] = c + i / 4 + 1 < q4_candidates ? first : max;
        const Lanes factor = div(load(candidates.by + 4 * c), load(factors));
        Lanes wq = splat(0.0f), qq = splat(0.0f);
        for (size_t k = 0; k < group / 4; ++k) {
            const Lanes limited = clamped(mul(weights[k], factor), -8.0f, 7.0f);
            const Lanes q = sub(add(limited, magic), magic);
            wq = add(wq, mul(weights[k], q));
            qq = add(qq, mul(q, q));
        }
        wq = quarter_sums(wq);
        qq = quarter_sums(qq);
        store(factors, factor);
        store(wqs, wq);
        store(qqs, qq);
        store(merits, div(mul(wq, wq), qq));
        for (size_t i = 0; i < lanes; i += 4) {
            if (!(merits[i] > most)) continue;
            most = merits[i];
            *inverse = factors[i];
            *scale = wqs[i] / qqs[i];
        }
    }
}
