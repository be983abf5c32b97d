// SPDX-License-Identifier: MIT
// What any file that this program knows holds.
#include "cli/file_description.h"

#include "cli/report.h"
#include "formats/gguf.h"
#include "formats/model_file.h"
#include "formats/token_stream.h"
#include "formats/tokenizer_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace mnm::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string type_name(const ModelFile& model) {
    const Codec* codec = model.uniform_codec();
    return std::string(codec != nullptr ? codec->name : "mixed");
}

Json tensors_json(const ModelFile& model) {
    Json tensors = Json::array();
    for (const TensorView& tensor : model.tensors)
        tensors.push_back({{"name", tensor.name},
                           {"type", tensor.codec->name},
                           {"rows", tensor.rows},
                           {"cols", tensor.cols}});
    return tensors;
}

Json model_json(const ModelFile& model) {
    const ModelDetails& details = model.details;
    const ModelConfig& config = details.config;
    Json json = {
        {"file", model.path()},
        {"format", model.format},
        {"type", type_name(model)},
        {"layers", config.layers},
        {"width", config.width},
        {"heads", config.heads},
        {"kv_heads", config.kv_heads},
        {"head_dim", config.head_dim},
        {"ffn", config.ffn},
        {"vocab", config.vocab},
        {"context", config.context},
        {"parameters", config.parameters()},
        {"bits_per_weight", model.bits_per_weight()},
        {"bytes", model.mapping->bytes().size()},
        {"rope_base", config.rope_base},
        {"norm_eps", config.norm_eps},
        {"tied_head", config.tied_head},
        {"tokenizer", !details.tokenizer.empty()},
        {"tokenizer_hash", fmt::format("{:016x}", details.tokenizer_hash)},
        {"chat_template", details.chat_template},
        {"sampling", nullptr},
        {"metadata", Json::object()},
    };
    if (const auto& sampling = details.sampling) {
        json["sampling"] = {{"temperature", sampling->temperature},
                            {"top_p", sampling->top_p},
                            {"top_k", sampling->top_k},
                            {"max_tokens", sampling->max_tokens}};
    }
    for (const auto& [key, value] : details.metadata)
        json["metadata"][key] = value;
    json["tensors"] = tensors_json(model);
    return json;
}

std::string model_text(const ModelFile& model) {
    const ModelDetails& details = model.details;
    const ModelConfig& config = details.config;
    std::string text = fmt::format(
        "format           {}\n"
        "type             {}, {:.3f} bits per weight in its tensors, {} bytes in all\n"
        "parameters       {}\n"
        "layers           {} x width {}, ffn {}\n"
        "heads            {} of {} ({} for keys and values)\n"
        "vocabulary       {}{}\n"
        "context          {}\n"
        "rope base        {:g}\n"
        "norm epsilon     {:g}\n",
        model.format, type_name(model), model.bits_per_weight(),
        grouped(model.mapping->bytes().size()), grouped(config.parameters()), config.layers,
        config.width, config.ffn, config.heads, config.head_dim, config.kv_heads,
        grouped(config.vocab), config.tied_head ? ", head tied to the embedding" : "",
        config.context, config.rope_base, config.norm_eps);
    text += fmt::format("tokenizer        {}\n",
                        details.tokenizer.empty() ? "none in the file" : "in the file");
    text += fmt::format("chat template    {}\n", details.chat_template.empty() ? "none" : "yes");
    if (const auto& sampling = details.sampling)
        text += fmt::format("sampling         temperature {}, top-p {}, top-k {}, {} tokens\n",
                            sampling->temperature, sampling->top_p, sampling->top_k,
                            sampling->max_tokens);
    for (const auto& [key, value] : details.metadata)
        text += fmt::format("{:<16} {}\n", key, value);
    return text;
}

Json stream_json(const TokenStream& stream, const std::string& path) {
    std::uint64_t targets = stream.tokens.empty() ? 0 : stream.tokens.size() - 1;
    if (stream.chat) {
        targets = 0;
        for (const std::uint16_t token : stream.tokens)
            targets += (token & TokenStream::target_bit) != 0 ? 1 : 0;
    }
    return {{"file", path},
            {"format", "tok"},
            {"type", stream.chat ? "chat" : "plain"},
            {"tokens", stream.tokens.size()},
            {"targets", targets},
            {"documents", stream.documents},
            {"vocab", stream.vocab},
            {"block", stream.block},
            {"tokenizer_hash", fmt::format("{:016x}", stream.tokenizer_hash)}};
}

Json tokenizer_json(const TokenizerFile& file, const std::string& path) {
    return {{"file", path},
            {"format", "tokenizer"},
            {"type", "byte-level BPE"},
            {"vocab", file.vocab},
            {"merges", file.merges.size()},
            {"first_special", file.first_special},
            {"specials", file.specials},
            {"tokenizer_hash", fmt::format("{:016x}", file.hash)}};
}

/// The keys with their values, one a line.
std::string plain_text(const Json& json) {
    std::string text;
    for (const auto& [key, value] : json.items())
        text += fmt::format("{:<16} {}\n", key,
                            value.is_string() ? value.get<std::string>() : value.dump());
    return text;
}

/// The type that most of the weights have.
std::string_view main_type(const GgufFile& file) {
    const auto largest = std::max_element(
        file.tensors.begin(), file.tensors.end(),
        [](const GgufTensor& a, const GgufTensor& b) { return a.elements() < b.elements(); });
    return largest == file.tensors.end() ? "none" : largest->type_name;
}

Json gguf_json(const GgufFile& file) {
    const std::string arch(file.text("general.architecture").value_or("unknown"));
    const auto count = [&](const char* key) {
        const auto value = file.integer(arch + "." + key);
        return value ? Json(*value) : Json(nullptr);
    };
    const auto text = [&](const char* key) {
        const auto value = file.text(key);
        return value ? Json(*value) : Json(nullptr);
    };
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;
    Json tensors = Json::array();
    for (const GgufTensor& tensor : file.tensors) {
        parameters += tensor.elements();
        bytes += tensor.bytes;
        tensors.push_back({{"name", tensor.name},
                           {"type", tensor.type_name},
                           {"rows", tensor.elements() / std::max<std::uint64_t>(1, tensor.ne[0])},
                           {"cols", tensor.ne[0]}});
    }
    const GgufArray* tokens = file.array("tokenizer.ggml.tokens");
    const double bits =
        parameters == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters);
    return {{"file", file.mapping->path()},
            {"format", "gguf"},
            {"type", main_type(file)},
            {"layers", count("block_count")},
            {"width", count("embedding_length")},
            {"heads", count("attention.head_count")},
            {"kv_heads", count("attention.head_count_kv")},
            {"head_dim", count("rope.dimension_count")},
            {"ffn", count("feed_forward_length")},
            {"vocab", tokens != nullptr ? Json(tokens->count) : count("vocab_size")},
            {"context", count("context_length")},
            {"parameters", parameters},
            {"bits_per_weight", bits},
            {"bytes", file.mapping->bytes().size()},
            {"version", file.version},
            {"architecture", arch},
            {"name", text("general.name")},
            {"tokenizer", text("tokenizer.ggml.model")},
            {"pre", text("tokenizer.ggml.pre")},
            {"chat_template", text("tokenizer.chat_template")},
            {"tensors", std::move(tensors)}};
}

/// Tensors are for scripts; people get how many there are.
FileDescription plain(Json json) {
    Json shown = json;
    if (shown.contains("tensors")) shown["tensors"] = shown["tensors"].size();
    return {std::move(json), plain_text(shown)};
}

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
    return bytes.size() >= magic.size() &&
           std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

} // namespace

Result<FileDescription> describe_file(const std::string& path, bool verify) {
    MNM_TRY(auto mapping, MappedFile::open(path));
    const auto bytes = mapping->bytes();
    FileDescription description;
    std::size_t verified = 0;
    if (TokenStream::probe(bytes)) {
        MNM_TRY(const TokenStream stream, TokenStream::open(path));
        description = plain(stream_json(stream, path));
    } else if (starts_with(bytes, "MNTOKZR1")) {
        MNM_TRY(const TokenizerFile file, parse_tokenizer(bytes, path));
        description = plain(tokenizer_json(file, path));
    } else if (starts_with(bytes, "GGUF")) {
        MNM_TRY(const GgufFile file, read_gguf(mapping));
        description = plain(gguf_json(file));
    } else if (!is_model(bytes)) {
        std::string known;
        for (const Format& format : model_formats())
            known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
        return Error{fmt::format("{}: {}; expected a model ({}), a tokenizer.bin or a .tok file",
                                 path, describe_content(bytes), known)};
    } else {
        MNM_TRY(const ModelFile model, open_model(path));
        description = {model_json(model), model_text(model)};
        if (verify) {
            MNM_CHECK(verify_tensors(model));
            for (const TensorView& tensor : model.tensors)
                verified += tensor.checksum ? 1 : 0;
        }
    }
    if (!verify) return description;
    description.json["tensors_verified"] = verified;
    description.text += fmt::format("{:<16} {}\n", "verified",
                                    verified == 0 ? "nothing: this format has no checksums"
                                                  : fmt::format("{} tensors", verified));
    return description;
}

} // namespace mnm::cli
