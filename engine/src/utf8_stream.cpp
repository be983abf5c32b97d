// SPDX-License-Identifier: MIT
// Whole characters out of a stream of bytes; what cannot be one becomes U+FFFD.
#include "engine/conversation.h"

#include <utility>

namespace mnm {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// Length of the character that starts with this byte; 0 if none does.
std::size_t character_length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xC2) return 0; // a continuation, or too long a spelling of ASCII
    if (lead < 0xE0) return 2;
    if (lead < 0xF0) return 3;
    return lead < 0xF5 ? 4 : 0;
}

/// Whether `byte` may follow the first `position` bytes of the character that starts with `lead`.
/// Only the second byte has special bounds: too long spellings, surrogates, past U+10FFFF.
bool may_follow(unsigned char lead, std::size_t position, unsigned char byte) {
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (position == 1) {
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    }
    return byte >= low && byte <= high;
}

} // namespace

std::string Utf8Stream::push(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (!pending_.empty()) {
            const auto lead = static_cast<unsigned char>(pending_[0]);
            if (may_follow(lead, pending_.size(), byte)) {
                pending_ += c;
                if (pending_.size() == character_length(lead)) out += std::exchange(pending_, {});
                continue;
            }
            // The longest start of a character counts as one error; this byte starts afresh.
            out += replacement;
            pending_.clear();
        }
        const std::size_t length = character_length(byte);
        if (length == 0)
            out += replacement;
        else if (length == 1)
            out += c;
        else
            pending_ += c;
    }
    return out;
}

std::string Utf8Stream::finish() {
    if (pending_.empty()) return {};
    pending_.clear();
    return std::string(replacement);
}

} // namespace mnm
