// SPDX-License-Identifier: MIT
// mnm info: what a file holds.
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"
#include "formats/model_file.h"
#include "formats/token_stream.h"
#include "formats/tokenizer_file.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace mnm::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
    std::string file;
    bool verify = false;
    OutputOptions report;
};

std::string type_name(const ModelFile &model) {
    const Codec *codec = model.uniform_codec();
    return std::string(codec != nullptr ? codec->name : "mixed");
}

Json tensors_json(const ModelFile &model) {
    Json tensors = Json::array();
    for (const TensorView &tensor : model.tensors)
        tensors.push_back({{"name", tensor.name},
                           {"type", tensor.codec->name},
                           {"rows", tensor.rows},
                           {"cols", tensor.cols}});
    return tensors;
}

Json model_json(const ModelFile &model) {
    const ModelDetails &details = model.details;
    const ModelConfig &config = details.config;
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
    if (const auto &sampling = details.sampling) {
        json["sampling"] = {{"temperature", sampling->temperature},
                            {"top_p", sampling->top_p},
                            {"top_k", sampling->top_k},
                            {"max_tokens", sampling->max_tokens}};
    }
    for (const auto &[key, value] : details.metadata)
        json["metadata"][key] = value;
    json["tensors"] = tensors_json(model);
    return json;
}

std::string model_text(const ModelFile &model) {
    const ModelDetails &details = model.details;
    const ModelConfig &config = details.config;
    std::string text = fmt::format(
        "format           {}\n"
        "type             {}, {:.3f} bits per weight, {} bytes\n"
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
    if (const auto &sampling = details.sampling)
        text += fmt::format("sampling         temperature {}, top-p {}, top-k {}, {} tokens\n",
                            sampling->temperature, sampling->top_p, sampling->top_k,
                            sampling->max_tokens);
    for (const auto &[key, value] : details.metadata)
        text += fmt::format("{:<16} {}\n", key, value);
    return text;
}

Json stream_json(const TokenStream &stream, const std::string &path) {
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

Json tokenizer_json(const TokenizerFile &file, const std::string &path) {
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
std::string plain_text(const Json &json) {
    std::string text;
    for (const auto &[key, value] : json.items())
        text += fmt::format("{:<16} {}\n", key,
                            value.is_string() ? value.get<std::string>() : value.dump());
    return text;
}

Result<void> info(const InfoOptions &options) {
    MNM_TRY(auto mapping, MappedFile::open(options.file));
    const auto bytes = mapping->bytes();
    const auto show = [&](const Json &json, const std::string &text) {
        if (options.report.json) {
            print_json(json);
        } else {
            print(text);
        }
    };
    if (TokenStream::probe(bytes)) {
        MNM_TRY(const TokenStream stream, TokenStream::open(options.file));
        const Json json = stream_json(stream, options.file);
        show(json, plain_text(json));
    } else if (bytes.size() >= 8 && std::memcmp(bytes.data(), "MNTOKZR1", 8) == 0) {
        MNM_TRY(const TokenizerFile file, parse_tokenizer(bytes, options.file));
        const Json json = tokenizer_json(file, options.file);
        show(json, plain_text(json));
    } else {
        MNM_TRY(const ModelFile model, open_model(options.file));
        if (options.verify) MNM_CHECK(verify_tensors(model));
        show(model_json(model), model_text(model));
    }
    return {};
}

} // namespace

Command add_info(CLI::App &app) {
    auto options = std::make_shared<InfoOptions>();
    CLI::App *parser = app.add_subcommand("info", "Show what a file holds");
    parser
        ->add_option("FILE", options->file,
                     "Checkpoint, model file, GGUF, token stream or tokenizer.bin")
        ->required();
    parser->add_flag("--verify", options->verify, "Compare every tensor with its checksum");
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  mnm info tales.mnm");
    return {parser, [options] { return info(*options); }};
}

} // namespace mnm::cli
