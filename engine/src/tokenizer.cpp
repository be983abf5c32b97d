// SPDX-License-Identifier: MIT
// Text to ids through the chunk rule, a cache of chunks and the merge rule; ids back to bytes.
#include "engine/tokenizer.h"

#include "engine/src/chunk_cache.h"
#include "engine/src/merger.h"
#include "engine/src/pretokenizer.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

namespace mnm {
namespace {

constexpr std::string_view special_names[] = {"<|bos|>", "<|user|>", "<|assistant|>", "<|system|>",
                                              "<|end|>"};

std::string special_name(std::uint32_t index) {
    if (index < std::size(special_names)) return std::string(special_names[index]);
    return "<|reserved_" + std::to_string(index) + "|>";
}

} // namespace

struct Tokenizer::Tables {
    explicit Tables(const TokenizerFile& file);

    void append(std::string_view bytes) {
        text += bytes;
        ends.push_back(static_cast<std::uint32_t>(text.size()));
    }
    std::size_t begin(std::size_t i) const { return i > 0 ? ends[i - 1] : 0; }
    std::size_t length(std::size_t i) const { return ends[i] - begin(i); }
    std::string_view item(std::size_t i) const {
        return std::string_view(text).substr(begin(i), length(i));
    }

    std::unique_ptr<ChunkCache> take_cache();
    void give_back(std::unique_ptr<ChunkCache> cache);

    std::string text;                ///< bytes and merges, then the names of the specials
    std::vector<std::uint32_t> ends; ///< in text, which the parser keeps below 64 bytes a token
    std::size_t plain = 0;           ///< bytes and merges
    Merger merger;
    std::mutex mutex;                              ///< guards idle
    std::vector<std::unique_ptr<ChunkCache>> idle; ///< as many as ever encoded at once
};

Tokenizer::Tables::Tables(const TokenizerFile& file) : merger(file) {
    const std::size_t items = 256 + file.merges.size() + file.specials;
    ends.reserve(items);
    text.reserve(8 * items); // a usual share; growing copies everything
    for (unsigned c = 0; c < 256; ++c) {
        const char byte = static_cast<char>(c);
        append({&byte, 1});
    }
    for (const auto& [left, right] : file.merges) {
        // A token not made yet: the parser refuses such files; here it makes an empty token.
        if (left < ends.size() && right < ends.size()) {
            text.append(text, begin(left), length(left));
            text.append(text, begin(right), length(right));
        }
        ends.push_back(static_cast<std::uint32_t>(text.size()));
    }
    plain = ends.size();
    for (std::uint32_t i = 0; i < file.specials; ++i)
        append(special_name(i));
}

std::unique_ptr<ChunkCache> Tokenizer::Tables::take_cache() {
    {
        const std::lock_guard lock(mutex);
        if (!idle.empty()) {
            std::unique_ptr<ChunkCache> cache = std::move(idle.back());
            idle.pop_back();
            return cache;
        }
    }
    return std::make_unique<ChunkCache>();
}

void Tokenizer::Tables::give_back(std::unique_ptr<ChunkCache> cache) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(cache));
}

Tokenizer::Tokenizer(TokenizerFile file)
    : file_(std::move(file)), tables_(std::make_unique<Tables>(file_)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 4); // a usual share; growing copies everything
    encode(text, ids);
    return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<TokenId>& ids) const {
    std::unique_ptr<ChunkCache> cache = tables_->take_cache();
    const Merger& merger = tables_->merger;
    // Ids are collected here, because room for the longest lets copies be of known length.
    constexpr std::size_t room = 512;
    TokenId staged[room + Merger::short_chunk];
    std::size_t count = 0;
    const auto flush = [&] {
        ids.insert(ids.end(), staged, staged + count);
        count = 0;
    };
    while (!text.empty()) {
        const std::size_t length = chunk_length(text);
        if (length == 1) {
            staged[count++] = static_cast<unsigned char>(text[0]);
        } else if (length <= ChunkCache::max_chunk) {
            const ChunkCache::Key key = ChunkCache::key(text, length);
            ChunkCache::Entry& entry = cache->at(key);
            if (entry.key != key) {
                const std::size_t made = merger.merge_short(text.substr(0, length), staged + count);
                if (made <= ChunkCache::max_ids) {
                    entry.key = key;
                    entry.count = static_cast<std::uint32_t>(made);
                    std::copy_n(staged + count, made, entry.ids);
                }
                count += made;
            } else {
                std::copy_n(entry.ids, ChunkCache::max_ids, staged + count);
                count += entry.count;
            }
        } else if (length <= Merger::short_chunk) {
            count += merger.merge_short(text.substr(0, length), staged + count);
        } else {
            flush();
            merger.merge_long(text.substr(0, length), ids);
        }
        if (count >= room) flush();
        text.remove_prefix(length);
    }
    flush();
    tables_->give_back(std::move(cache)); // where something threw, the cache is just freed
}

std::string_view Tokenizer::next_chunk(std::string_view text) {
    return text.substr(0, chunk_length(text));
}

std::string_view Tokenizer::bytes(TokenId id) const {
    if (is_special(id)) return tables_->item(tables_->plain + (id - file_.first_special));
    return id < tables_->plain ? tables_->item(id) : std::string_view();
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
    std::string text;
    for (const TokenId id : ids)
        text += bytes(id);
    return text;
}

bool Tokenizer::is_special(TokenId id) const {
    return id >= file_.first_special && id - file_.first_special < file_.specials;
}

} // namespace mnm
