// SPDX-License-Identifier: MIT
// tokenizer.bin as the texts and numbers that llama.cpp's byte-level BPE expects.
#include "formats/src/gguf_keys.h"
#include "formats/src/gguf_types.h"
#include "formats/src/unicode.h"
#include "formats/tokenizer_file.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

namespace mnm {

namespace {

constexpr std::int32_t normal_token = 1;
constexpr std::int32_t control_token = 3;
constexpr std::uint32_t end_special = 4; ///< <|end|>, counted from the first special

constexpr std::string_view special_names[] = {"<|bos|>", "<|user|>", "<|assistant|>", "<|system|>",
                                              "<|end|>"};

/// GPT-2's letters for bytes: printable Latin-1 stands for itself, the rest follows from U+0100 on.
std::array<std::string, 256> byte_letters() {
    std::array<std::string, 256> letters;
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
        append_utf8(letters[byte], itself ? byte : next++);
    }
    return letters;
}

std::string special_name(std::uint32_t number) {
    if (number < std::size(special_names)) return std::string(special_names[number]);
    return fmt::format("<|reserved_{}|>", number);
}

} // namespace

Result<void> add_tokenizer_keys(GgufKeys& keys, const ModelDetails& details, std::string_view pre,
                                const std::string& path) {
    if (details.tokenizer.empty())
        return Error{fmt::format("{}: the model comes without a tokenizer, and a GGUF file needs "
                                 "one",
                                 path)};
    MNM_TRY(const TokenizerFile file, parse_tokenizer(details.tokenizer, path + ": tokenizer"));
    if (file.vocab != details.config.vocab)
        return Error{fmt::format("{}: the tokenizer has {} tokens, expected {} as the model", path,
                                 file.vocab, details.config.vocab)};

    const std::array<std::string, 256> letters = byte_letters();
    std::vector<std::string> tokens(letters.begin(), letters.end());
    std::vector<std::string> merges;
    tokens.reserve(file.vocab);
    merges.reserve(file.merges.size());
    for (const auto& [left, right] : file.merges) {
        tokens.push_back(tokens[left] + tokens[right]);
        merges.push_back(tokens[left] + " " + tokens[right]);
    }
    std::vector<std::int32_t> kinds(tokens.size(), normal_token);
    kinds.resize(file.vocab, control_token);
    while (tokens.size() < file.first_special)
        tokens.push_back(fmt::format("<|unused_{}|>", tokens.size()));
    for (std::uint32_t i = 0; i < file.specials; ++i)
        tokens.push_back(special_name(i));

    std::unordered_map<std::string_view, std::size_t> seen;
    for (std::size_t id = 0; id < tokens.size(); ++id)
        if (const auto [first, fresh] = seen.emplace(tokens[id], id); !fresh)
            return Error{fmt::format("{}: tokens {} and {} are both spelt {}, expected different "
                                     "texts",
                                     path, first->second, id, printable(tokens[id]))};

    keys.add("tokenizer.ggml.model", "gpt2");
    keys.add("tokenizer.ggml.pre", pre);
    keys.add("tokenizer.ggml.tokens", tokens);
    keys.add("tokenizer.ggml.token_type", kinds);
    keys.add("tokenizer.ggml.merges", merges);
    keys.add("tokenizer.ggml.bos_token_id", file.first_special);
    keys.add("tokenizer.ggml.eos_token_id", file.first_special + end_special);
    keys.add("tokenizer.ggml.eot_token_id", file.first_special + end_special);
    keys.add_flag("tokenizer.ggml.add_bos_token", true);
    keys.add_flag("tokenizer.ggml.add_eos_token", false);
    if (!details.chat_template.empty()) keys.add("tokenizer.chat_template", details.chat_template);
    return {};
}

} // namespace mnm
