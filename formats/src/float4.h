// SPDX-License-Identifier: MIT
// Four floats at a time: the lanes in which a quantiser's sums are defined.
//
// simde maps them to the processor's own vectors, or to plain C that gives the same bits.
#pragma once

#include <simde/x86/sse2.h>

#include <cstddef>
#include <cstdint>

namespace mnm {

struct Float4 {
    simde__m128 v;
};

inline Float4 load4(const float* from) {
    return {simde_mm_loadu_ps(from)};
}
inline Float4 all4(float x) {
    return {simde_mm_set1_ps(x)};
}
inline Float4 operator+(Float4 a, Float4 b) {
    return {simde_mm_add_ps(a.v, b.v)};
}
inline Float4 operator-(Float4 a, Float4 b) {
    return {simde_mm_sub_ps(a.v, b.v)};
}
inline Float4 operator*(Float4 a, Float4 b) {
    return {simde_mm_mul_ps(a.v, b.v)};
}
inline Float4 operator/(Float4 a, Float4 b) {
    return {simde_mm_div_ps(a.v, b.v)};
}
/// `b` where either is a NaN, as the x86 instructions do.
inline Float4 max4(Float4 a, Float4 b) {
    return {simde_mm_max_ps(a.v, b.v)};
}
inline Float4 min4(Float4 a, Float4 b) {
    return {simde_mm_min_ps(a.v, b.v)};
}
inline Float4 abs4(Float4 a) {
    return {simde_mm_and_ps(a.v, simde_mm_castsi128_ps(simde_mm_set1_epi32(0x7fffffff)))};
}
/// Whole numbers as int32.
inline void store_integers(Float4 a, std::int32_t* to) {
    simde_mm_storeu_si128(reinterpret_cast<simde__m128i*>(to), simde_mm_cvttps_epi32(a.v));
}
/// The order in which lanes are added up everywhere.
inline float sum4(Float4 a) {
    float v[4];
    simde_mm_storeu_ps(v, a.v);
    return (v[0] + v[1]) + (v[2] + v[3]);
}
/// sum4 of four vectors at once.
inline Float4 sum4_each(Float4 a, Float4 b, Float4 c, Float4 d) {
    const simde__m128 ab = simde_mm_unpacklo_ps(a.v, b.v), cd = simde_mm_unpacklo_ps(c.v, d.v);
    const simde__m128 ab2 = simde_mm_unpackhi_ps(a.v, b.v), cd2 = simde_mm_unpackhi_ps(c.v, d.v);
    const Float4 first = {simde_mm_add_ps(simde_mm_movelh_ps(ab, cd), simde_mm_movehl_ps(cd, ab))};
    const Float4 last = {
        simde_mm_add_ps(simde_mm_movelh_ps(ab2, cd2), simde_mm_movehl_ps(cd2, ab2))};
    return first + last;
}
inline void store4(Float4 a, float* to) {
    simde_mm_storeu_ps(to, a.v);
}
inline float max_lane(Float4 m) {
    float v[4];
    simde_mm_storeu_ps(v, m.v);
    const float a = v[0] > v[1] ? v[0] : v[1];
    const float b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}

/// Adding this and taking it away again rounds |x| < 2^22 to the nearest integer, ties to even, and
/// in between the low bits of the sum are that integer.
inline constexpr float round_magic = 12582912.0f;

/// max|x| over n floats, n a multiple of 4.
inline float max_magnitude(const float* x, std::size_t n) {
    Float4 m = all4(0.0f);
    for (std::size_t i = 0; i < n; i += 4)
        m = max4(abs4(load4(x + i)), m);
    return max_lane(m);
}

} // namespace mnm
