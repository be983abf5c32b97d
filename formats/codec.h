// SPDX-License-Identifier: MIT
// A Codec is one weight type: how rows of f32 become bytes and come back.
//
// A tensor is stored in one or two planes. The data plane holds `data_row_bytes(cols)` for each
// row; the scale plane, where the type has one, `scale_row_bytes(cols)` for each row. A type whose
// scales sit inside its blocks (q8_0, q4_0) has no scale plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mnm {

enum class WeightType : std::uint32_t { f32, q8, q4, f16, q8_0, q4_0 };

/// The search of docs/numerics.md over one group of 32 weights w, of which `first` is the first of
/// the largest magnitude `max`: the best 1/scale and the scale refitted to what it rounds to.
using Q4Search = void (*)(const float* w, float first, float max, float* inverse,
                          float* scale) noexcept;

struct EncodeOptions {
    bool fit = true; ///< q4, q4_0: search the scale (docs/numerics.md); false: max/7, or ggml's own
    /// Does the search; null: the codec itself does. The kernels' (kernels::Kernels::fit_q4) give
    /// the same bits sooner.
    Q4Search search = nullptr;
};

struct Codec {
    WeightType type;
    std::string_view name;     ///< as typed after --type and stored in format 2
    double nominal_bits;       ///< per weight, scales of a wide row excluded for per-row scales
    std::uint64_t column_step; ///< the number of columns must be a multiple of this
    std::uint64_t (*data_row_bytes)(std::uint64_t cols);
    std::uint64_t (*scale_row_bytes)(std::uint64_t cols);

    /// Encodes `rows` rows of `cols` finite floats; `scales` may be null where scale_row_bytes is
    /// 0.
    void (*encode)(const float* source, std::uint64_t rows, std::uint64_t cols,
                   const EncodeOptions& options, std::byte* data, std::byte* scales);
    /// The inverse: writes rows x cols floats.
    void (*decode)(const std::byte* data, const std::byte* scales, std::uint64_t rows,
                   std::uint64_t cols, float* target);
};

/// Every weight type this program can store, in the order they are listed to people.
std::span<const Codec> codecs();
/// Null when there is no such name.
const Codec* find_codec(std::string_view name);
const Codec& codec(WeightType type);

} // namespace mnm
