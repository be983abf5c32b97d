// SPDX-License-Identifier: MIT
// Keys and values of a text's tokens, in the blocks and the number type that the kernels read.
#pragma once

#include "engine/src/activations.h"
#include "engine/src/huge_pages.h"
#include "formats/model_config.h"
#include "kernels/table.h"

#include <cstddef>

namespace mnm {

/// Room for the whole context; pages are taken from the system as tokens are put in.
class KeyValueCache {
  public:
    KeyValueCache(const ModelConfig& config, kernels::CacheType type)
        : kv_heads_(config.kv_heads), dim_(config.head_dim),
          blocks_((config.context + kernels::key_block - 1) / kernels::key_block), type_(type),
          keys_(floats(config, dim_)), values_(floats(config, kernels::padded(dim_))),
          scales_(type == kernels::CacheType::q8 ? 2 * slots(config) : 0) {}

    std::size_t bytes() const {
        return (keys_.count() + values_.count() + scales_.count()) * sizeof(float);
    }
    /// Blocks of one key/value head at full context.
    std::size_t blocks() const { return blocks_; }
    /// Bytes that attention reads for `count` tokens of one layer.
    std::size_t bytes_read(std::size_t count) const {
        return count * kv_heads_ * (dim_ + kernels::padded(dim_)) * width();
    }

    /// Before tokens [from, to) are put in. A short text leaves most pages untouched; a long one is
    /// read from end to end for each token, and small pages then cost a fifth of the time.
    void grow(std::size_t from, std::size_t to) {
        constexpr std::size_t is_long = 4 * kernels::key_block;
        if (from >= is_long || to < is_long) return;
        for (const Floats* numbers : {&keys_, &values_})
            prefer_huge_pages(numbers->data(), numbers->count() * sizeof(float));
    }

    /// Token `place` of one key/value head; `key` (rotated) and `value` hold head_dim numbers.
    void put(const kernels::Kernels& kernel, std::size_t layer, std::size_t kv_head,
             std::size_t place, const float* key, const float* value) {
        constexpr std::size_t block = kernels::key_block;
        const std::size_t b = index(layer, kv_head, place / block), j = place % block;
        const std::size_t stride = kernels::padded(dim_);
        const float k = kernel.cache_put(key, dim_, type_, at(keys_, b * dim_ * block + j), block);
        const float v =
            kernel.cache_put(value, dim_, type_, at(values_, (b * block + j) * stride), 1);
        if (type_ != kernels::CacheType::q8) return;
        scales_.data()[2 * b * block + j] = k;
        scales_.data()[(2 * b + 1) * block + j] = v;
    }

    /// What a kernel needs of block b of a head, save the queries and the number of keys.
    kernels::AttentionBlock block(std::size_t layer, std::size_t kv_head, std::size_t b) const {
        constexpr std::size_t block = kernels::key_block;
        const std::size_t i = index(layer, kv_head, b);
        kernels::AttentionBlock result{};
        result.type = type_;
        result.k = at(keys_, i * dim_ * block);
        result.v = at(values_, i * kernels::padded(dim_) * block);
        if (type_ == kernels::CacheType::q8) {
            result.k_scale = scales_.data() + 2 * i * block;
            result.v_scale = result.k_scale + block;
        }
        result.head_dim = dim_;
        return result;
    }

  private:
    std::size_t width() const {
        return type_ == kernels::CacheType::f32 ? 4 : type_ == kernels::CacheType::f16 ? 2 : 1;
    }
    std::size_t slots(const ModelConfig& config) const {
        return config.layers * kv_heads_ * blocks_ * kernels::key_block;
    }
    std::size_t floats(const ModelConfig& config, std::size_t numbers) const {
        return (slots(config) * numbers * width() + sizeof(float) - 1) / sizeof(float);
    }
    std::size_t index(std::size_t layer, std::size_t kv_head, std::size_t b) const {
        return (layer * kv_heads_ + kv_head) * blocks_ + b;
    }
    void* at(const Floats& numbers, std::size_t i) const {
        return reinterpret_cast<std::byte*>(numbers.data()) + i * width();
    }

    std::size_t kv_heads_, dim_, blocks_;
    kernels::CacheType type_;
    Floats keys_;   ///< [layer][kv head][block][head_dim][key_block] numbers
    Floats values_; ///< [layer][kv head][block][key_block][padded(head_dim)] numbers
    Floats scales_; ///< [layer][kv head][block][2][key_block]: of keys, of values; q8 only
};

} // namespace mnm
