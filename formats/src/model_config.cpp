// SPDX-License-Identifier: MIT
// The limits of a model's shape. They are wide for models of this kind and narrow enough that no
// product of checked numbers leaves 64 bits.
#include "formats/model_config.h"

#include <fmt/format.h>

#include <cmath>

namespace mnm {

namespace {

constexpr std::uint64_t max_layers = 4096;
constexpr std::uint64_t max_width = 1 << 20;
constexpr std::uint64_t max_vocab = 1 << 24;
constexpr std::uint64_t max_context = 1 << 24;
constexpr std::uint64_t column_group = 32;

/// Beyond these, the angle of a late position is no number that sine and cosine mean anything for.
constexpr double min_rope_base = 1e-3, max_rope_base = 1e12;
constexpr double min_rope_factor = 1e-3, max_rope_factor = 1e6;

bool positive(double value) {
    return std::isfinite(value) && value > 0;
}

Result<void> check_scaling(const ModelConfig& config, std::string_view file) {
    const RopeScaling& scaling = config.rope_scaling;
    if (scaling.type == RopeScaling::Type::none) return {};
    if (!(scaling.factor >= min_rope_factor && scaling.factor <= max_rope_factor))
        return Error{fmt::format("{}: RoPE scaling factor is {}, expected {} to {}", file,
                                 scaling.factor, min_rope_factor, max_rope_factor)};
    if (scaling.type == RopeScaling::Type::linear) return {};
    if (!positive(scaling.low_freq_factor) || !positive(scaling.high_freq_factor) ||
        scaling.low_freq_factor >= scaling.high_freq_factor)
        return Error{fmt::format("{}: RoPE scaling frequency factors are {} and {}, expected two "
                                 "positive numbers, the low one smaller",
                                 file, scaling.low_freq_factor, scaling.high_freq_factor)};
    if (scaling.original_context == 0 || scaling.original_context > max_context)
        return Error{fmt::format("{}: RoPE scaling original context is {}, expected 1 to {}", file,
                                 scaling.original_context, max_context)};
    return {};
}

} // namespace

std::uint64_t ModelConfig::parameters() const {
    const std::uint64_t layer = qkv_rows() * width + width * q_rows() + 3 * ffn * width + 2 * width;
    return (tied_head ? 1 : 2) * vocab * width + layers * layer + width;
}

Result<void> ModelConfig::check(std::string_view file) const {
    const struct {
        std::string_view name;
        std::uint64_t value, limit;
    } counts[] = {
        {"layers", layers, max_layers},    {"width", width, max_width},
        {"heads", heads, max_width},       {"kv_heads", kv_heads, max_width},
        {"head_dim", head_dim, max_width}, {"ffn", ffn, max_width},
        {"vocab", vocab, max_vocab},       {"context", context, max_context},
    };
    for (const auto& [name, value, limit] : counts)
        if (value == 0 || value > limit)
            return Error{fmt::format("{}: {} is {}, expected 1 to {}", file, name, value, limit)};
    if (head_dim % 2 != 0)
        return Error{fmt::format("{}: head_dim is {}, expected an even number", file, head_dim)};
    if (heads % kv_heads != 0)
        return Error{fmt::format("{}: kv_heads is {}, expected a divisor of heads, {}", file,
                                 kv_heads, heads)};
    if (q_rows() > max_width)
        return Error{fmt::format("{}: heads x head_dim is {}, expected at most {}", file, q_rows(),
                                 max_width)};
    const struct {
        std::string_view name;
        std::uint64_t value;
    } widths[] = {{"width", width}, {"heads x head_dim", q_rows()}, {"ffn", ffn}};
    for (const auto& [name, value] : widths)
        if (value % column_group != 0)
            return Error{fmt::format("{}: {} is {}, expected a multiple of {}", file, name, value,
                                     column_group)};
    if (!(rope_base >= min_rope_base && rope_base <= max_rope_base))
        return Error{fmt::format("{}: RoPE base is {}, expected {} to {}", file, rope_base,
                                 min_rope_base, max_rope_base)};
    if (!positive(norm_eps))
        return Error{
            fmt::format("{}: norm epsilon is {}, expected a positive number", file, norm_eps)};
    return check_scaling(*this, file);
}

} // namespace mnm
