// SPDX-License-Identifier: MIT
// The encoders and decoders behind the table in codec.cpp.
#pragma once

#include "formats/codec.h"
#include "formats/src/bytes.h"

namespace mnm {

/// Weights that share one scale in q4, q8_0 and q4_0.
inline constexpr std::uint64_t weight_group = 32;

/// Where a tensor's planes lie, from its own start: data, zeros to 64, scales, zeros to 64.
struct Planes {
    std::uint64_t data;   ///< bytes
    std::uint64_t scales; ///< bytes; 0: the codec has no scale plane
    std::uint64_t scales_offset() const { return pad64(data); }
    std::uint64_t stored() const { return pad64(data) + pad64(scales); }
};

/// The caller has checked the shape, so nothing overflows (model_config.cpp).
inline Planes planes(const Codec& codec, std::uint64_t rows, std::uint64_t cols) {
    return {codec.data_row_bytes(cols) * rows, codec.scale_row_bytes(cols) * rows};
}

void encode_f16(const float*, std::uint64_t, std::uint64_t, const EncodeOptions&, std::byte*,
                std::byte*);
void decode_f16(const std::byte*, const std::byte*, std::uint64_t, std::uint64_t, float*);
void encode_q8(const float*, std::uint64_t, std::uint64_t, const EncodeOptions&, std::byte*,
               std::byte*);
void decode_q8(const std::byte*, const std::byte*, std::uint64_t, std::uint64_t, float*);
void encode_q4(const float*, std::uint64_t, std::uint64_t, const EncodeOptions&, std::byte*,
               std::byte*);
void decode_q4(const std::byte*, const std::byte*, std::uint64_t, std::uint64_t, float*);
void encode_q8_0(const float*, std::uint64_t, std::uint64_t, const EncodeOptions&, std::byte*,
                 std::byte*);
void decode_q8_0(const std::byte*, const std::byte*, std::uint64_t, std::uint64_t, float*);
void encode_q4_0(const float*, std::uint64_t, std::uint64_t, const EncodeOptions&, std::byte*,
                 std::byte*);
void decode_q4_0(const std::byte*, const std::byte*, std::uint64_t, std::uint64_t, float*);

/// The fitted search over one group of 32: writes its 16 bytes of nibbles, returns the scale.
float fit_group(const float* x, Q4Search search, std::byte* nibbles);

} // namespace mnm
