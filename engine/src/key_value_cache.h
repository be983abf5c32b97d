// SPDX-License-Identifier: MIT
// Keys and values of a text's tokens, in the blocks and the number type that the kernels read.
#pragma once

#include "engine/src/zeroed.h"
#include "formats/model_config.h"
#include "kernels/table.h"

#include <cstddef>

namespace mnm {

/// Room for the whole context; pages are taken from the system as tokens are put in. What a text
/// of any length uses lies together: blocks come first, then layers, then heads.
class KeyValueCache {
  public:
    KeyValueCache(const ModelConfig& config, kernels::CacheType type)
        : layers_(config.layers), kv_heads_(config.kv_heads), dim_(config.head_dim),
          blocks_((config.context + kernels::key_block - 1) / kernels::key_block), type_(type),
          block_bytes_(key_bytes() + value_bytes() + scale_bytes()),
          bytes_(blocks_ * layers_ * kv_heads_ * block_bytes_, PageSize::huge) {}

    std::size_t bytes() const { return bytes_.count(); }
    /// Blocks of one key/value head at full context.
    std::size_t blocks() const { return blocks_; }
    /// Bytes that attention reads for `count` tokens of one layer.
    std::size_t bytes_read(std::size_t count) const {
        return count * kv_heads_ * (dim_ + kernels::padded(dim_)) * width();
    }

    /// Token `place` of one key/value head; `key` (rotated) and `value` hold head_dim numbers.
    void put(const kernels::Kernels& kernel, std::size_t layer, std::size_t kv_head,
             std::size_t place, const float* key, const float* value) {
        constexpr std::size_t block = kernels::key_block;
        const std::size_t j = place % block;
        std::byte* keys = at(layer, kv_head, place / block);
        std::byte* values = keys + key_bytes();
        const float k = kernel.cache_put(key, dim_, type_, keys + j * width(), block);
        const float v =
            kernel.cache_put(value, dim_, type_, values + j * kernels::padded(dim_) * width(), 1);
        if (type_ != kernels::CacheType::q8) return;
        auto* scales = reinterpret_cast<float*>(values + value_bytes());
        scales[j] = k;
        scales[block + j] = v;
    }

    /// What a kernel needs of block b of a head, save the queries and the number of keys.
    kernels::AttentionBlock block(std::size_t layer, std::size_t kv_head, std::size_t b) const {
        kernels::AttentionBlock result{};
        const std::byte* keys = at(layer, kv_head, b);
        result.type = type_;
        result.k = keys;
        result.v = keys + key_bytes();
        if (type_ == kernels::CacheType::q8) {
            result.k_scale = reinterpret_cast<const float*>(keys + key_bytes() + value_bytes());
            result.v_scale = result.k_scale + kernels::key_block;
        }
        result.head_dim = dim_;
        return result;
    }

  private:
    std::size_t width() const {
        return type_ == kernels::CacheType::f32 ? 4 : type_ == kernels::CacheType::f16 ? 2 : 1;
    }
    std::size_t key_bytes() const { return kernels::key_block * dim_ * width(); }
    std::size_t value_bytes() const { return kernels::key_block * kernels::padded(dim_) * width(); }
    std::size_t scale_bytes() const {
        return type_ == kernels::CacheType::q8 ? 2 * kernels::key_block * sizeof(float) : 0;
    }
    std::byte* at(std::size_t layer, std::size_t kv_head, std::size_t b) const {
        return bytes_.data() + ((b * layers_ + layer) * kv_heads_ + kv_head) * block_bytes_;
    }

    std::size_t layers_, kv_heads_, dim_, blocks_;
    kernels::CacheType type_;
    /// Of one head: keys [head_dim][key_block], values [key_block][padded(head_dim)] and, q8 only,
    /// a scale for each key and each value.
    std::size_t block_bytes_;
    Zeroed<std::byte> bytes_; ///< [block][layer][kv head][block_bytes_]
};

} // namespace mnm
