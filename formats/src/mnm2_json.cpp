// SPDX-License-Identifier: MIT
// The JSON sections of a version 2 file, to text and back.
#include "formats/src/mnm2_layout.h"
#include "formats/src/unicode.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace mnm::mnm2 {

namespace {

using nlohmann::json;

constexpr const char* scaling_names[] = {"none", "linear", "llama3"};

/// One object of a section. Nothing here throws: types are checked before they are taken.
class Object {
  public:
    Object(const json& value, std::string place) : value_(value), place_(std::move(place)) {}

    const json* find(const char* key) const {
        if (!value_.is_object()) return nullptr;
        const auto found = value_.find(key);
        return found == value_.end() ? nullptr : &*found;
    }

    Result<void> read(const char* key, std::uint64_t& out,
                      std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) const {
        const json* field = find(key);
        if (field == nullptr || !field->is_number_unsigned() || field->get<std::uint64_t>() > max)
            return wrong(key, "a whole number in range");
        out = field->get<std::uint64_t>();
        return {};
    }
    Result<void> read(const char* key, std::uint32_t& out) const {
        std::uint64_t wide = 0;
        MNM_CHECK(read(key, wide, std::numeric_limits<std::uint32_t>::max()));
        out = static_cast<std::uint32_t>(wide);
        return {};
    }
    Result<void> read(const char* key, double& out) const {
        const json* field = find(key);
        if (field == nullptr || !field->is_number()) return wrong(key, "a number");
        out = field->get<double>();
        return {};
    }
    Result<void> read(const char* key, bool& out) const {
        const json* field = find(key);
        if (field == nullptr || !field->is_boolean()) return wrong(key, "true or false");
        out = field->get<bool>();
        return {};
    }
    Result<void> read(const char* key, std::string& out) const {
        const json* field = find(key);
        if (field == nullptr || !field->is_string()) return wrong(key, "a text");
        out = field->get<std::string>();
        return {};
    }
    Error wrong(const char* key, std::string_view expected) const {
        const json* field = find(key);
        std::string found = field == nullptr
                                ? "missing"
                                : field->dump(-1, ' ', true, json::error_handler_t::replace);
        if (found.size() > 40) found = found.substr(0, 40) + "...";
        return Error{fmt::format("{}: {} is {}, expected {}", place_, key, found, expected)};
    }

  private:
    const json& value_;
    std::string place_;
};

std::string place_of(const std::string& file, std::string_view section) {
    return fmt::format("{}: section {}", file, section);
}

/// The parser takes several times their length for brackets, and nothing here nests deeply.
bool nests_beyond(std::string_view text, std::size_t limit) {
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '\\')
            ++i;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{') && ++depth > limit)
            return true;
        else if (!quoted && (c == ']' || c == '}') && depth > 0)
            --depth;
    }
    return false;
}

Result<json> parse(std::string_view text, const std::string& place) {
    constexpr std::size_t deepest = 8;
    if (nests_beyond(text, deepest))
        return Error{fmt::format("{}: nested more than {} deep", place, deepest)};
    json value = json::parse(text.begin(), text.end(), nullptr, false);
    if (value.is_discarded()) return Error{fmt::format("{}: not valid JSON", place)};
    return value;
}

Result<void> parse_scaling(const Object& object, RopeScaling& scaling, std::string_view place) {
    std::string type;
    MNM_CHECK(object.read("type", type));
    if (type == scaling_names[0]) return {};
    MNM_CHECK(object.read("factor", scaling.factor));
    scaling.type = RopeScaling::Type::linear;
    if (type == scaling_names[1]) return {};
    if (type != scaling_names[2])
        return Error{fmt::format("{}: rope_scaling type {} is not supported, expected none, linear "
                                 "or llama3",
                                 place, printable(type))};
    scaling.type = RopeScaling::Type::llama3;
    MNM_CHECK(object.read("low_freq_factor", scaling.low_freq_factor));
    MNM_CHECK(object.read("high_freq_factor", scaling.high_freq_factor));
    return object.read("original_context", scaling.original_context);
}

/// Takes pairs of texts as they come and stops at the first thing that is not one, so that a large
/// section never becomes a tree of values.
class PairReader {
  public:
    using number_integer_t = json::number_integer_t;
    using number_unsigned_t = json::number_unsigned_t;
    using number_float_t = json::number_float_t;
    using string_t = json::string_t;
    using binary_t = json::binary_t;

    bool null() { return stop(); }
    bool boolean(bool) { return stop(); }
    bool number_integer(number_integer_t) { return stop(); }
    bool number_unsigned(number_unsigned_t) { return stop(); }
    bool number_float(number_float_t, const string_t&) { return stop(); }
    bool binary(binary_t&) { return stop(); }
    bool start_object(std::size_t) { return stop(); }
    bool key(string_t&) { return stop(); }
    bool end_object() { return stop(); }
    bool string(string_t& text) {
        if (depth_ != 2 || texts_ == 2) return stop();
        if (texts_++ == 0)
            pairs.emplace_back(std::move(text), std::string());
        else
            pairs.back().second = std::move(text);
        return true;
    }
    bool start_array(std::size_t) {
        if (++depth_ > 2) return stop();
        too_many = depth_ == 2 && pairs.size() == metadata_limit;
        texts_ = 0;
        return !too_many;
    }
    bool end_array() { return --depth_ == 0 || texts_ == 2 || stop(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
        return false;
    }

    Metadata pairs;
    bool no_pair = false;
    bool too_many = false;

  private:
    bool stop() {
        no_pair = true;
        return false;
    }
    int depth_ = 0;
    int texts_ = 0; ///< of the pair at hand
};

} // namespace

std::string config_text(const ModelDetails& details) {
    const ModelConfig& config = details.config;
    const RopeScaling& scaling = config.rope_scaling;
    json rope = {{"type", scaling_names[static_cast<std::size_t>(scaling.type)]}};
    if (scaling.type != RopeScaling::Type::none) rope["factor"] = scaling.factor;
    if (scaling.type == RopeScaling::Type::llama3) {
        rope["low_freq_factor"] = scaling.low_freq_factor;
        rope["high_freq_factor"] = scaling.high_freq_factor;
        rope["original_context"] = scaling.original_context;
    }
    const json value = {
        {"layers", config.layers},
        {"width", config.width},
        {"heads", config.heads},
        {"kv_heads", config.kv_heads},
        {"head_dim", config.head_dim},
        {"ffn", config.ffn},
        {"vocab", config.vocab},
        {"context", config.context},
        {"rope_base", config.rope_base},
        {"norm_eps", config.norm_eps},
        {"tied_head", config.tied_head},
        {"rope_scaling", rope},
        // As text: many JSON readers keep numbers as doubles.
        {"tokenizer_hash", fmt::format("{:016x}", details.tokenizer_hash)},
    };
    return value.dump();
}

Result<void> parse_config(std::string_view text, const std::string& file, ModelDetails& details) {
    const std::string place = place_of(file, config_section);
    MNM_TRY(const json value, parse(text, place));
    const Object object(value, place);
    ModelConfig& config = details.config;
    MNM_CHECK(object.read("layers", config.layers));
    MNM_CHECK(object.read("width", config.width));
    MNM_CHECK(object.read("heads", config.heads));
    MNM_CHECK(object.read("kv_heads", config.kv_heads));
    MNM_CHECK(object.read("head_dim", config.head_dim));
    MNM_CHECK(object.read("ffn", config.ffn));
    MNM_CHECK(object.read("vocab", config.vocab));
    MNM_CHECK(object.read("context", config.context));
    MNM_CHECK(object.read("rope_base", config.rope_base));
    MNM_CHECK(object.read("norm_eps", config.norm_eps));
    MNM_CHECK(object.read("tied_head", config.tied_head));
    if (const json* scaling = object.find("rope_scaling"); scaling != nullptr)
        MNM_CHECK(
            parse_scaling(Object(*scaling, place + ": rope_scaling"), config.rope_scaling, place));
    if (object.find("tokenizer_hash") != nullptr) {
        std::string hash;
        MNM_CHECK(object.read("tokenizer_hash", hash));
        if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
            return object.wrong("tokenizer_hash", "16 hexadecimal digits");
        details.tokenizer_hash = std::stoull(hash, nullptr, 16);
    }
    return config.check(file);
}

std::string sampling_text(const SamplingDefaults& sampling) {
    const json value = {{"temperature", sampling.temperature},
                        {"top_p", sampling.top_p},
                        {"top_k", sampling.top_k},
                        {"max_tokens", sampling.max_tokens}};
    return value.dump();
}

Result<SamplingDefaults> parse_sampling(std::string_view text, const std::string& file) {
    const std::string place = place_of(file, sampling_section);
    MNM_TRY(const json value, parse(text, place));
    const Object object(value, place);
    SamplingDefaults sampling;
    MNM_CHECK(object.read("temperature", sampling.temperature));
    MNM_CHECK(object.read("top_p", sampling.top_p));
    MNM_CHECK(object.read("top_k", sampling.top_k));
    MNM_CHECK(object.read("max_tokens", sampling.max_tokens));
    if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature)))
        return object.wrong("temperature", "0 or more");
    if (!(sampling.top_p > 0 && sampling.top_p <= 1))
        return object.wrong("top_p", "more than 0, at most 1");
    if (sampling.top_k == 0) return object.wrong("top_k", "1 or more");
    if (sampling.max_tokens == 0) return object.wrong("max_tokens", "1 or more");
    return sampling;
}

Result<std::string> metadata_text(const Metadata& metadata, const std::string& file) {
    if (metadata.size() > metadata_limit)
        return Error{fmt::format("{}: {} metadata entries, expected at most {}", file,
                                 metadata.size(), metadata_limit)};
    json value = json::array();
    for (const auto& [key, text] : metadata) {
        if (!valid_utf8(key) || !valid_utf8(text))
            return Error{
                fmt::format("{}: metadata entry {} is not valid UTF-8", file, value.size())};
        value.push_back({key, text});
    }
    return value.dump();
}

Result<Metadata> parse_metadata(std::string_view text, const std::string& file) {
    const std::string place = place_of(file, metadata_section);
    PairReader reader;
    if (json::sax_parse(text.begin(), text.end(), &reader)) return std::move(reader.pairs);
    if (reader.too_many)
        return Error{fmt::format("{}: more than {} entries", place, metadata_limit)};
    if (reader.no_pair)
        return Error{
            fmt::format("{}: entry {} is not a pair of texts", place, reader.pairs.size())};
    return Error{fmt::format("{}: not valid JSON", place)};
}

} // namespace mnm::mnm2
