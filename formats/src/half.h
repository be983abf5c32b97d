// SPDX-License-Identifier: MIT
// IEEE half precision, by integer arithmetic alone so that every processor agrees.
#pragma once

#include <bit>
#include <cstdint>

namespace mnm {

/// Rounds to nearest, ties to even; beyond 65519.99 becomes infinity; a NaN stays one.
constexpr std::uint16_t to_half(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) // NaN: keep the top of the payload, and make it quiet
        return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) { // normal: rebias the exponent, round away 13 bits
        const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
        return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
    }
    if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign); // below 2^-25
    const std::uint32_t shift = 126u - (magnitude >> 23); // 14..24 bits go, in units of 2^-24
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t half = 1u << (shift - 1);
    const std::uint32_t rounded = mantissa + half - 1u + ((mantissa >> shift) & 1u);
    return static_cast<std::uint16_t>(sign | (rounded >> shift));
}

constexpr float from_half(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t exponent = (half >> 10) & 0x1fu;
    const std::uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0) { // zero or subnormal: an exact product of two floats
        const float value = static_cast<float>(mantissa) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

} // namespace mnm
