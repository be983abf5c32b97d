// SPDX-License-Identifier: MIT
// The reference level: plain loops that say what every other level must compute, bit for bit.
#include "kernels/table.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace mnm::kernels {
namespace {

/// a*b + c with one rounding. Without an instruction for it: the product is exact in double, the
/// sum is rounded to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
/// 2008), so that the second rounding, to float, is the only one that counts.
float fused(float a, float b, float c) noexcept {
#ifdef __FP_FAST_FMAF
    return fmaf(a, b, c);
#else
    const double product = static_cast<double>(a) * b;
    const double addend = c;
    double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    if (error < 0 || error > 0) {
        uint64_t bits;
        memcpy(&bits, &sum, sizeof bits);
        if ((bits & 1) == 0) {
            const bool away = (error > 0) == (sum > 0);
            bits = away ? bits + 1 : bits - 1;
            memcpy(&sum, &bits, sizeof sum);
        }
    }
    return static_cast<float>(sum);
#endif
}

float bits_to_float(uint32_t bits) noexcept {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint32_t float_to_bits(float value) noexcept {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/// Adding this to |x| < 2^22 leaves round-to-even(x) in the low bits.
constexpr float round_magic = 12582912.0f;
constexpr uint32_t round_magic_bits = 0x4B400000;

/// The fold every sum of sixteen lanes ends with.
float fold(const float* lane) noexcept {
    float a[8], b[4];
    for (int i = 0; i < 8; ++i)
        a[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; ++i)
        b[i] = a[i] + a[i + 4];
    return (b[0] + b[2]) + (b[1] + b[3]);
}

/// Dot of two vectors, n a multiple of lanes.
float dot(const float* a, const float* b, size_t n) noexcept {
    float lane[lanes] = {};
    for (size_t i = 0; i < n; i += lanes) {
        for (size_t j = 0; j < lanes; ++j)
            lane[j] = fused(a[i + j], b[i + j], lane[j]);
    }
    return fold(lane);
}

/// Cephes' polynomial over [-ln2/2, ln2/2] (S. Moshier), with fused steps.
float exp_one(float x) noexcept {
    const bool vanishes = x < -87.33f;
    if (x > 88.37f) x = 88.37f;
    const float shifted = fused(x, 1.44269504f, round_magic);
    const float n = shifted - round_magic;
    float r = fused(n, -0.693359375f, x);
    r = fused(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fused(p, r, 1.3981999507e-3f);
    p = fused(p, r, 8.3334519073e-3f);
    p = fused(p, r, 4.1665795894e-2f);
    p = fused(p, r, 1.6666665459e-1f);
    p = fused(p, r, 5.0000001201e-1f);
    p = fused(p, r * r, r) + 1.0f;
    const float power = bits_to_float((float_to_bits(shifted) << 23) + 0x3F800000U);
    return vanishes ? 0.0f : p * power;
}

void quantize(const float* x, size_t n, int8_t* q, float* scale, int32_t* sum) noexcept {
    for (size_t g = 0; g < n / group; ++g, x += group, q += group) {
        float largest = 0;
        for (size_t i = 0; i < group; ++i) {
            const float magnitude = fabsf(x[i]);
            largest = largest < magnitude ? magnitude : largest;
        }
        const float inverse = 127.0f / largest;
        sum[g] = 0;
        if (!(inverse <= FLT_MAX)) { // zeros, or too small for its inverse
            memset(q, 0, group);
            scale[g] = 0;
            continue;
        }
        scale[g] = largest / 127.0f;
        for (size_t i = 0; i < group; ++i) {
            const uint32_t rounded = float_to_bits(x[i] * inverse + round_magic) - round_magic_bits;
            q[i] = static_cast<int8_t>(rounded);
            sum[g] += q[i];
        }
    }
}

void store(const Target& target, size_t token, size_t row, float value) noexcept {
    float& y = target.y[token * target.stride + row];
    y = target.add ? y + value : value;
}

void matmul_f32(const float* w, size_t begin, size_t end, const FloatRows& x, const Target& target,
                void*) noexcept {
    for (size_t t = 0; t < x.count; ++t) {
        for (size_t r = begin; r < end; ++r) {
            store(target, t, r, dot(w + r * x.cols, x.x + t * x.cols, x.cols));
        }
    }
}

void matmul_q8(const int8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void*) noexcept {
    const size_t groups = x.cols / group;
    for (size_t t = 0; t < x.count; ++t) {
        for (size_t r = begin; r < end; ++r) {
            float acc = 0;
            for (size_t g = 0; g < groups; ++g) {
                const int8_t* a = x.q + t * x.cols + g * group;
                const int8_t* b = w + r * x.cols + g * group;
                int32_t sum = 0;
                for (size_t i = 0; i < group; ++i)
                    sum += a[i] * b[i];
                acc = fused(static_cast<float>(sum), x.scale[t * groups + g], acc);
            }
            store(target, t, r, acc * scale[r]);
        }
    }
}

void matmul_q4(const uint8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void*) noexcept {
    const size_t groups = x.cols / group;
    for (size_t t = 0; t < x.count; ++t) {
        for (size_t r = begin; r < end; ++r) {
            float acc = 0;
            for (size_t g = 0; g < groups; ++g) {
                const int8_t* a = x.q + t * x.cols + g * group;
                const uint8_t* b = w + (r * groups + g) * (group / 2);
                int32_t sum = 0;
                for (size_t i = 0; i < group / 2; ++i) {
                    sum += a[i] * ((b[i] & 15) - 8);
                    sum += a[i + group / 2] * ((b[i] >> 4) - 8);
                }
                const float factor = scale[r * groups + g] * x.scale[t * groups + g];
                acc = fused(static_cast<float>(sum), factor, acc);
            }
            store(target, t, r, acc);
        }
    }
}

void rmsnorm(const float* x, const float* w, size_t n, float eps, float* y) noexcept {
    const float mean = dot(x, x, n) / static_cast<float>(n);
    const float inverse = 1.0f / sqrtf(mean + eps);
    for (size_t i = 0; i < n; ++i)
        y[i] = x[i] * inverse * w[i];
}

void rope(float* head, size_t head_dim, const float* cos_sin) noexcept {
    for (size_t i = 0; i < head_dim; i += 2) {
        const float c = cos_sin[i], s = cos_sin[i + 1];
        const float a = head[i], b = head[i + 1];
        head[i] = fused(a, c, -(b * s));
        head[i + 1] = fused(b, c, a * s);
    }
}

void swiglu(const float* gate, const float* up, size_t n, float* y) noexcept {
    for (size_t i = 0; i < n; ++i)
        y[i] = gate[i] / (1.0f + exp_one(-gate[i])) * up[i];
}

/// Rounds to the nearest half float, ties to even; what is larger than the largest becomes it.
uint16_t to_half(float x) noexcept {
    const uint32_t bits = float_to_bits(x), sign = bits >> 16 & 0x8000;
    const float magnitude = fabsf(x);
    if (magnitude >= 65504.0f) return static_cast<uint16_t>(sign | 0x7BFF);
    if (magnitude < 0x1p-14f) { // a multiple of 2^-24, the unit in the last place of 0.5
        return static_cast<uint16_t>(sign + float_to_bits(magnitude + 0.5f) - 0x3F000000U);
    }
    const uint32_t even = (bits >> 13 & 1) + 0xFFF;
    return static_cast<uint16_t>(sign | (((bits & 0x7FFFFFFF) + even - 0x38000000U) >> 13));
}

float from_half(uint16_t half) noexcept {
    const float magnitude = bits_to_float(static_cast<uint32_t>(half & 0x7FFF) << 13) * 0x1p112f;
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

float cache_put(const float* x, size_t n, CacheType type, void* y, size_t stride) noexcept {
    if (type == CacheType::f32) {
        for (size_t i = 0; i < n; ++i)
            static_cast<float*>(y)[i * stride] = x[i];
        return 1;
    }
    if (type == CacheType::f16) {
        for (size_t i = 0; i < n; ++i)
            static_cast<uint16_t*>(y)[i * stride] = to_half(x[i]);
        return 1;
    }
    float largest = 0;
    for (size_t i = 0; i < n; ++i) {
        const float magnitude = fabsf(x[i]);
        largest = largest < magnitude ? magnitude : largest;
    }
    const float inverse = 127.0f / largest;
    const bool vanishes = !(inverse <= FLT_MAX);
    for (size_t i = 0; i < n; ++i) {
        const float turned = x[i] * (vanishes ? 0.0f : inverse) + round_magic;
        static_cast<int8_t*>(y)[i * stride] =
            static_cast<int8_t>(float_to_bits(turned) - round_magic_bits);
    }
    return vanishes ? 0.0f : largest / 127.0f;
}

float stored(const void* numbers, CacheType type, size_t i) noexcept {
    switch (type) {
    case CacheType::f32:
        return static_cast<const float*>(numbers)[i];
    case CacheType::f16:
        return from_half(static_cast<const uint16_t*>(numbers)[i]);
    default:
        return static_cast<const int8_t*>(numbers)[i];
    }
}

void attend(const AttentionBlock& block, const AttentionState& state) noexcept {
    const size_t dim = block.head_dim, stride = padded(dim);
    const bool scaled = block.type == CacheType::q8;
    for (size_t h = 0; h < block.heads; ++h) {
        float p[key_block];
        float largest = -INFINITY;
        for (size_t j = 0; j < block.keys; ++j) {
            p[j] = 0;
            for (size_t d = 0; d < dim; ++d) {
                const float key = stored(block.k, block.type, d * key_block + j);
                p[j] = fused(block.q[h * dim + d], key, p[j]);
            }
            if (scaled) p[j] *= block.k_scale[j];
            p[j] *= block.scale;
            if (p[j] > largest) largest = p[j];
        }
        float lane[lanes] = {};
        for (size_t j = 0; j < block.keys; ++j) {
            p[j] = exp_one(p[j] - largest);
            lane[j % lanes] += p[j];
            if (scaled) p[j] *= block.v_scale[j];
        }
        const float before = block.first ? largest : state.max[h];
        const float top = before > largest ? before : largest;
        const float keep = exp_one(before - top), take = exp_one(largest - top);
        state.max[h] = top;
        state.sum[h] = block.first ? fold(lane) : fused(state.sum[h], keep, fold(lane) * take);
        for (size_t d = 0; d < stride; ++d) {
            float acc = 0;
            for (size_t j = 0; j < block.keys; ++j)
                acc = fused(p[j], stored(block.v, block.type, j * stride + d), acc);
            float& out = state.out[h * stride + d];
            out = block.first ? acc : fused(out, keep, acc * take);
        }
    }
}

void attend_merge(const AttentionState& state, const AttentionState& next, size_t heads,
                  size_t head_dim) noexcept {
    const size_t stride = padded(head_dim);
    for (size_t h = 0; h < heads; ++h) {
        const float top = state.max[h] > next.max[h] ? state.max[h] : next.max[h];
        const float keep = exp_one(state.max[h] - top);
        const float take = exp_one(next.max[h] - top);
        for (size_t d = h * stride; d < (h + 1) * stride; ++d)
            state.out[d] = fused(state.out[d], keep, next.out[d] * take);
        state.sum[h] = fused(state.sum[h], keep, next.sum[h] * take);
        state.max[h] = top;
    }
}

void attend_finish(const AttentionState& state, size_t heads, size_t head_dim, float* y) noexcept {
    for (size_t h = 0; h < heads; ++h) {
        const float inverse = 1.0f / state.sum[h];
        for (size_t d = 0; d < head_dim; ++d)
            y[h * head_dim + d] = state.out[h * padded(head_dim) + d] * inverse;
    }
}

float softmax(const float* x, size_t n, float scale, float* y) noexcept {
    float largest = x[0];
    for (size_t i = 1; i < n; ++i)
        largest = x[i] > largest ? x[i] : largest;
    float lane[lanes] = {};
    for (size_t i = 0; i < n; ++i) {
        y[i] = exp_one((x[i] - largest) * scale);
        lane[i % lanes] += y[i];
    }
    return fold(lane);
}

void exp_all(const float* x, size_t n, float* y) noexcept {
    for (size_t i = 0; i < n; ++i)
        y[i] = exp_one(x[i]);
}

size_t argmax(const float* x, size_t n) noexcept {
    size_t best = 0;
    for (size_t i = 1; i < n; ++i) {
        if (x[i] > x[best]) best = i;
    }
    return best;
}

uint64_t sum_words(const uint64_t* words, size_t n) noexcept {
    uint64_t sums[8] = {};
    for (size_t i = 0; i < n; i += 8) {
        for (size_t k = 0; k < 8; ++k)
            sums[k] += words[i + k];
    }
    for (size_t k = 1; k < 8; ++k)
        sums[0] += sums[k];
    return sums[0];
}

void fit_q4(const float* w, float first, float max, float* inverse, float* scale) noexcept {
    float most = -1.0f;
    for (size_t c = 0; c < q4_candidates; ++c) {
        const float factor = q4_candidate(c) / (c + 1 < q4_candidates ? first : max);
        float wq[4] = {}, qq[4] = {};
        for (size_t i = 0; i < group; ++i) {
            const float turned = w[i] * factor;
            const float limited = turned < -8.0f ? -8.0f : turned > 7.0f ? 7.0f : turned;
            const float q = (limited + round_magic) - round_magic;
            wq[i % 4] += w[i] * q;
            qq[i % 4] += q * q;
        }
        const float wqs = (wq[0] + wq[1]) + (wq[2] + wq[3]);
        const float qqs = (qq[0] + qq[1]) + (qq[2] + qq[3]);
        if (!(wqs * wqs / qqs > most)) continue;
        most = wqs * wqs / qqs;
        *inverse = factor;
        *scale = wqs / qqs;
    }
}

uint64_t dot_loop(uint64_t count) noexcept {
    // Volatile, for the compiler would know the result.
    volatile int8_t source = 3;
    int32_t sum = 0;
    for (uint64_t i = 0; i < count; ++i)
        sum += source * source;
    volatile int32_t kept = sum;
    static_cast<void>(kept);
    return count;
}

} // namespace

void install_ref(Kernels& table) noexcept;
void install_ref(Kernels& table) noexcept {
    table.quantize = quantize;
    table.matmul_f32 = matmul_f32;
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.rmsnorm = rmsnorm;
    table.rope = rope;
    table.swiglu = swiglu;
    table.cache_put = cache_put;
    table.attend = attend;
    table.attend_merge = attend_merge;
    table.attend_finish = attend_finish;
    table.softmax = softmax;
    table.exp = exp_all;
    table.argmax = argmax;
    table.fit_q4 = fit_q4;
    table.sum_words = sum_words;
    table.dot_loop = dot_loop;
}

} // namespace mnm::kernels
