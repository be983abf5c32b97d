// SPDX-License-Identifier: MIT
// Four floats at a time: the lanes in which a quantiser's sums are defined.
//
// The compilers' own vector type does lane by lane what the scalar operators do, so the bits are
// the same on a processor without vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace mnm {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));

inline Float4 load4(const float* from) {
    Float4 v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
inline Float4 all4(float x) {
    return Float4{x, x, x, x};
}
/// `b` where either is a NaN, as the x86 instructions do.
#if defined(__SSE2__) // which GCC does not find by itself
inline Float4 max4(Float4 a, Float4 b) {
    return _mm_max_ps(a, b);
}
inline Float4 min4(Float4 a, Float4 b) {
    return _mm_min_ps(a, b);
}
#else
inline Float4 max4(Float4 a, Float4 b) {
    return a > b ? a : b;
}
inline Float4 min4(Float4 a, Float4 b) {
    return a < b ? a : b;
}
#endif
inline Float4 abs4(Float4 a) {
    return reinterpret_cast<Float4>(reinterpret_cast<Int4>(a) & 0x7fffffff);
}
/// The order in which lanes are added up everywhere.
inline float sum4(Float4 v) {
    return (v[0] + v[1]) + (v[2] + v[3]);
}
inline float max_lane(Float4 v) {
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
