// SPDX-License-Identifier: MIT
// SHA-256, for comparing whole files with published hashes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mnm::tests {

namespace detail {

__extension__ typedef unsigned __int128 Wide;

/// The first 32 bits of the fraction of the given root of the first 64 primes, by integer search.
template <int Power>
inline std::array<std::uint32_t, 64> prime_roots() {
    std::array<std::uint32_t, 64> out{};
    std::size_t count = 0;
    for (unsigned candidate = 2; count < out.size(); ++candidate) {
        bool prime = true;
        for (unsigned d = 2; d * d <= candidate; ++d)
            prime = prime && candidate % d != 0;
        if (!prime) continue;
        // The largest r with r^Power <= candidate * 2^(32 Power).
        std::uint64_t root = 0;
        for (int bit = 36; bit >= 0; --bit) {
            const std::uint64_t trial = root | std::uint64_t{1} << bit;
            Wide power = trial;
            for (int i = 1; i < Power; ++i)
                power *= trial;
            if (power <= static_cast<Wide>(candidate) << 32 * Power) root = trial;
        }
        out[count++] = static_cast<std::uint32_t>(root);
    }
    return out;
}

} // namespace detail

inline std::string sha256(std::span<const std::byte> message) {
    static const std::array<std::uint32_t, 64> k = detail::prime_roots<3>();
    static const std::array<std::uint32_t, 64> start = detail::prime_roots<2>();
    std::vector<std::byte> bytes(message.begin(), message.end());
    bytes.push_back(std::byte{0x80});
    while (bytes.size() % 64 != 56)
        bytes.push_back(std::byte{0});
    for (int shift = 56; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<std::byte>(std::uint64_t{message.size()} * 8 >> shift));

    std::array<std::uint32_t, 8> state;
    for (std::size_t i = 0; i < 8; ++i)
        state[i] = start[i];
    for (std::size_t block = 0; block < bytes.size(); block += 64) {
        std::array<std::uint32_t, 64> w;
        for (std::size_t i = 0; i < 16; ++i) {
            w[i] = 0;
            for (std::size_t j = 0; j < 4; ++j)
                w[i] = w[i] << 8 | static_cast<std::uint32_t>(bytes[block + 4 * i + j]);
        }
        for (std::size_t i = 16; i < 64; ++i) {
            const std::uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
                   (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
        }
        auto [a, b, c, d, e, f, g, h] = state;
        for (std::size_t i = 0; i < 64; ++i) {
            const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                     ((e & f) ^ (~e & g)) + k[i] + w[i];
            const std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                                     ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
        }
        const std::uint32_t add[] = {a, b, c, d, e, f, g, h};
        for (std::size_t i = 0; i < 8; ++i)
            state[i] += add[i];
    }
    std::string hex;
    for (const std::uint32_t word : state)
        for (int shift = 28; shift >= 0; shift -= 4)
            hex.push_back("0123456789abcdef"[word >> shift & 15]);
    return hex;
}

} // namespace mnm::tests
