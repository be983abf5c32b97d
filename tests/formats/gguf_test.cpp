// SPDX-License-Identifier: MIT
// GGUF: an export read back value by value, and files that must be refused.
#include "tests/formats/damage.h"

#include "formats/gguf.h"
#include "formats/src/bytes.h"
#include "formats/src/gguf_keys.h"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <set>

using namespace mnm;
using namespace mnm::tests;

namespace {

Result<GgufFile> read(const std::string& path) {
    MNM_TRY(auto mapping, MappedFile::open(path));
    return read_gguf(mapping);
}

std::optional<std::string> outcome_of_gguf(const std::string& path) {
    const auto file = read(path);
    return file ? std::nullopt : std::optional(file.error().message);
}

std::string outcome_of(const std::vector<std::byte>& bytes) {
    const TempFolder folder;
    write_bytes(folder / "x.gguf", bytes);
    const auto began = std::chrono::steady_clock::now();
    const auto refused = outcome_of_gguf(folder / "x.gguf");
    BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(2)));
    if (!refused) return {};
    check_message(*refused, folder / "x.gguf");
    return refused->substr((folder / "x.gguf").size() + 2);
}

bool contains(const std::string& text, std::string_view part) {
    BOOST_TEST_INFO(text);
    return text.find(part) != std::string::npos;
}

/// A GGUF file built by hand.
class Builder {
  public:
    template <class T>
    Builder& put(const T& value) {
        append(body_, value);
        return *this;
    }
    Builder& text(std::string_view s) {
        put(std::uint64_t{s.size()});
        append_fixed_text(body_, s, s.size());
        return *this;
    }
    Builder& key(std::string_view name, GgufType type) {
        ++keys_;
        return text(name).put(static_cast<std::uint32_t>(type));
    }
    Builder& number(std::string_view name, std::uint32_t value) {
        return key(name, GgufType::u32).put(value);
    }
    Builder& string(std::string_view name, std::string_view value) {
        return key(name, GgufType::string).text(value);
    }
    Builder& array(std::string_view name, GgufType type, std::uint64_t count) {
        return key(name, GgufType::array).put(static_cast<std::uint32_t>(type)).put(count);
    }
    Builder& tensor(std::string_view name, const std::vector<std::uint64_t>& ne,
                    std::uint64_t offset = 0, std::uint32_t type = 0) {
        ++tensors_;
        text(name).put(static_cast<std::uint32_t>(ne.size()));
        for (const std::uint64_t n : ne)
            put(n);
        return put(type).put(offset);
    }
    std::vector<std::byte> bytes(std::size_t data = 0, std::uint32_t version = 3) const {
        std::vector<std::byte> out;
        append_fixed_text(out, "GGUF", 4);
        append(out, version);
        append(out, tensors_);
        append(out, keys_);
        out.insert(out.end(), body_.begin(), body_.end());
        out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_ + data);
        return out;
    }
    Builder& align(std::size_t to) {
        alignment_ = to;
        return *this;
    }

  private:
    std::vector<std::byte> body_;
    std::uint64_t tensors_ = 0;
    std::uint64_t keys_ = 0;
    std::size_t alignment_ = 32;
};

ModelFile random_source(const TempFolder& folder, const ModelConfig& config = small_config()) {
    auto source = open_model(write_random_checkpoint(folder / "a.ckpt", config, 3));
    BOOST_REQUIRE(source);
    source->details.tokenizer = tiny_tokenizer(static_cast<std::uint32_t>(config.vocab));
    source->details.chat_template = "{{ x }}";
    return std::move(*source);
}

GgufFile exported(const TempFolder& folder, const ModelFile& source, const char* type) {
    const auto plan = gguf_plan(source, *find_codec(type), {"tales", "qwen2"});
    BOOST_REQUIRE_MESSAGE(plan, why(plan));
    const Result<void> written = write_model(folder / "m.gguf", "gguf", source, *plan);
    BOOST_REQUIRE_MESSAGE(written, why(written));
    auto file = read(folder / "m.gguf");
    BOOST_REQUIRE_MESSAGE(file, why(file));
    return std::move(*file);
}

bool same_rows(const GgufTensor& tensor, const TensorView& source, std::uint64_t row) {
    const std::uint64_t row_bytes = source.cols * 4;
    return tensor.bytes == tensor.elements() * 4 &&
           std::memcmp(tensor.data, source.data + row * row_bytes, tensor.bytes) == 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_f32_export_value_by_value) {
    const TempFolder folder;
    ModelFile source = random_source(folder);
    source.details.metadata = {
        {"general.author", "someone"}, {"note", "stays here"}, {"general.name", "other"}};
    const GgufFile file = exported(folder, source, "f32");
    const ModelConfig& config = source.details.config;
    BOOST_TEST(file.version == 3u);
    BOOST_TEST(file.alignment == 32u);

    const auto u32 = [&](std::string_view key) {
        const GgufValue* value = file.find(key);
        BOOST_REQUIRE_MESSAGE(value != nullptr, key);
        BOOST_TEST(gguf_type_name(value->type) == "u32");
        return *file.integer(key);
    };
    BOOST_TEST(*file.text("general.architecture") == "llama");
    BOOST_TEST(*file.text("general.name") == "tales");
    BOOST_TEST(*file.text("general.author") == "someone");
    BOOST_TEST(file.find("note") == nullptr);
    BOOST_TEST(u32("general.file_type") == 0u);
    BOOST_TEST(u32("general.quantization_version") == 2u);
    BOOST_TEST(u32("llama.context_length") == config.context);
    BOOST_TEST(u32("llama.embedding_length") == config.width);
    BOOST_TEST(u32("llama.block_count") == config.layers);
    BOOST_TEST(u32("llama.feed_forward_length") == config.ffn);
    BOOST_TEST(u32("llama.attention.head_count") == config.heads);
    BOOST_TEST(u32("llama.attention.head_count_kv") == config.kv_heads);
    BOOST_TEST(u32("llama.rope.dimension_count") == config.head_dim);
    BOOST_TEST(u32("llama.vocab_size") == config.vocab);
    BOOST_TEST(*file.number("llama.rope.freq_base") == 10000.0);
    BOOST_TEST(*file.number("llama.attention.layer_norm_rms_epsilon") == double{1e-5f});
    BOOST_TEST(gguf_type_name(file.find("llama.rope.freq_base")->type) == "f32");
    BOOST_TEST(file.find("llama.attention.key_length") == nullptr);
    BOOST_TEST(file.find("llama.rope.scaling.type") == nullptr);

    // Tensors, each cut from its place in the source.
    struct Part {
        const char* name;
        const char* source;
        std::uint64_t row, rows;
    };
    const std::uint64_t q = config.q_rows(), kv = config.kv_rows(), f = config.ffn;
    const Part parts[] = {{"attn_norm", "attn_norm", 0, 1},
                          {"attn_q", "attn_qkv", 0, q},
                          {"attn_k", "attn_qkv", q, kv},
                          {"attn_v", "attn_qkv", q + kv, kv},
                          {"attn_output", "attn_output", 0, config.width},
                          {"ffn_norm", "ffn_norm", 0, 1},
                          {"ffn_gate", "ffn_gate_up", 0, f},
                          {"ffn_up", "ffn_gate_up", f, f},
                          {"ffn_down", "ffn_down", 0, config.width}};
    for (const char* block : {"blk.0.", "blk.1."})
        for (const Part& part : parts) {
            const GgufTensor* tensor = file.find_tensor(std::string(block) + part.name + ".weight");
            BOOST_REQUIRE_MESSAGE(tensor != nullptr, block << part.name);
            const TensorView& from = *source.find(std::string(block) + part.source + ".weight");
            BOOST_TEST(tensor->type_name == "f32");
            BOOST_TEST(tensor->dims == (part.rows == 1 ? 1u : 2u));
            BOOST_TEST(tensor->ne[0] == from.cols);
            BOOST_TEST(tensor->ne[1] == part.rows);
            BOOST_TEST(same_rows(*tensor, from, part.row), block << part.name);
        }
    for (const char* name : {"token_embd.weight", "output_norm.weight"})
        BOOST_TEST(same_rows(*file.find_tensor(name), *source.find(name), 0));
    BOOST_TEST(file.find_tensor("output.weight") == nullptr);
    BOOST_TEST(file.tensors.size() == 2u + 2 * 9);
    // The last tensor is padded too.
    const GgufTensor& last = file.tensors.back();
    const std::span<const std::byte> bytes = file.mapping->bytes();
    BOOST_TEST(bytes.size() % 32 == 0u);
    BOOST_TEST(last.data + (last.bytes + 31) / 32 * 32 == bytes.data() + bytes.size());
}

BOOST_AUTO_TEST_CASE(the_tokenizer_value_by_value) {
    const TempFolder folder;
    const GgufFile file = exported(folder, random_source(folder), "f32");
    BOOST_TEST(*file.text("tokenizer.ggml.model") == "gpt2");
    BOOST_TEST(*file.text("tokenizer.ggml.pre") == "qwen2");
    BOOST_TEST(*file.text("tokenizer.chat_template") == "{{ x }}");
    BOOST_TEST(*file.integer("tokenizer.ggml.bos_token_id") == 272u);
    BOOST_TEST(*file.integer("tokenizer.ggml.eos_token_id") == 276u);
    BOOST_TEST(*file.integer("tokenizer.ggml.eot_token_id") == 276u);
    BOOST_TEST(std::get<bool>(file.find("tokenizer.ggml.add_bos_token")->value));
    BOOST_TEST(!std::get<bool>(file.find("tokenizer.ggml.add_eos_token")->value));

    const GgufArray& tokens = *file.array("tokenizer.ggml.tokens");
    const GgufArray& kinds = *file.array("tokenizer.ggml.token_type");
    const GgufArray& merges = *file.array("tokenizer.ggml.merges");
    BOOST_REQUIRE(tokens.count == 288u);
    BOOST_REQUIRE(kinds.count == 288u);
    BOOST_REQUIRE(merges.count == 8u);
    const std::map<std::size_t, std::string_view> expected = {{0, "\xc4\x80"},
                                                              {10, "\xc4\x8a"},
                                                              {32, "\xc4\xa0"},
                                                              {33, "!"},
                                                              {126, "~"},
                                                              {127, "\xc4\xa1"},
                                                              {160, "\xc5\x82"},
                                                              {161, "\xc2\xa1"},
                                                              {172, "\xc2\xac"},
                                                              {173, "\xc5\x83"},
                                                              {174, "\xc2\xae"},
                                                              {255, "\xc3\xbf"},
                                                              {256, "he"},
                                                              {259, "hello"},
                                                              {260, "\xc4\xa0t"},
                                                              {263, "\xc4\xa0"
                                                                    "and"},
                                                              {264, "<|unused_264|>"},
                                                              {271, "<|unused_271|>"},
                                                              {272, "<|bos|>"},
                                                              {273, "<|user|>"},
                                                              {274, "<|assistant|>"},
                                                              {275, "<|system|>"},
                                                              {276, "<|end|>"},
                                                              {277, "<|reserved_5|>"},
                                                              {287, "<|reserved_15|>"}};
    for (const auto& [id, text] : expected)
        BOOST_TEST(tokens.strings[id] == text, id);
    BOOST_TEST(std::set(tokens.strings.begin(), tokens.strings.end()).size() == 288u);
    for (std::uint64_t id = 0; id < 288; ++id)
        BOOST_REQUIRE_EQUAL(kinds.integer(id), id < 264 ? 1 : 3);
    BOOST_TEST(merges.strings[0] == "h e");
    BOOST_TEST(merges.strings[3] == "hell o");
    BOOST_TEST(merges.strings[7] == "\xc4\xa0 and");
}

BOOST_AUTO_TEST_CASE(other_types_and_shapes) {
    const TempFolder folder;
    ModelFile source = random_source(folder);
    const std::pair<const char*, std::uint64_t> types[] = {{"f16", 1}, {"q4_0", 2}, {"q8_0", 7}};
    for (const auto& [type, number] : types) {
        const GgufFile file = exported(folder, source, type);
        BOOST_TEST(*file.integer("general.file_type") == number);
        BOOST_TEST(file.find_tensor("token_embd.weight")->type_name == type);
        BOOST_TEST(file.find_tensor("blk.1.ffn_norm.weight")->type_name == "f32");
        const auto list = find_format("gguf")->list(file.mapping);
        BOOST_REQUIRE(list);
        const TensorView& key = (*list)[3];
        BOOST_TEST(key.name == "blk.0.attn_k.weight");
        std::vector<std::byte> data(key.rows * key.codec->data_row_bytes(key.cols));
        const TensorView& from = *source.find("blk.0.attn_qkv.weight");
        key.codec->encode(reinterpret_cast<const float*>(from.data) + 64 * from.cols, key.rows,
                          key.cols, {}, data.data(), nullptr);
        BOOST_TEST(std::memcmp(data.data(), key.data, data.size()) == 0);
    }
    source.details.config.rope_scaling = {RopeScaling::Type::linear, 2.0};
    const GgufFile scaled = exported(folder, source, "f32");
    BOOST_TEST(*scaled.text("llama.rope.scaling.type") == "linear");
    BOOST_TEST(*scaled.number("llama.rope.scaling.factor") == 2.0);
    const auto opened = open_model(folder / "m.gguf");
    BOOST_REQUIRE(!opened);
    BOOST_TEST(contains(opened.error().message, "GGUF files are written"));
}

BOOST_AUTO_TEST_CASE(a_wide_head_dim_and_an_untied_head) {
    const TempFolder folder;
    ModelConfig config = small_config();
    config.head_dim = 24;
    config.tied_head = false;
    config.heads = 4;
    // The plan needs only names and shapes of the source.
    ModelFile source = random_source(folder);
    source.details.config = config;
    const auto plan = gguf_plan(source, *find_codec("q8_0"), {"x"});
    BOOST_REQUIRE_MESSAGE(plan, why(plan));
    auto out = AtomicFile::create(folder / "wide.gguf");
    const Result<void> written =
        find_format("gguf")->write(*out, *plan,
                                   [](std::size_t, std::uint64_t, std::uint64_t, std::byte*,
                                      std::byte* scales) -> Result<void> {
                                       BOOST_REQUIRE(scales == nullptr);
                                       return {};
                                   });
    BOOST_REQUIRE_MESSAGE(written, why(written));
    BOOST_REQUIRE(out->commit());
    const auto file = read(folder / "wide.gguf");
    BOOST_REQUIRE_MESSAGE(file, why(file));
    BOOST_TEST(*file->integer("llama.attention.key_length") == 24u);
    BOOST_TEST(*file->integer("llama.attention.value_length") == 24u);
    BOOST_TEST(*file->integer("llama.rope.dimension_count") == 24u);
    BOOST_TEST(*file->text("tokenizer.ggml.pre") == "llama-bpe");
    BOOST_TEST(file->find_tensor("output.weight")->ne[1] == 288u);
    BOOST_TEST(file->find_tensor("blk.0.attn_output.weight")->ne[0] == 96u);
}

BOOST_AUTO_TEST_CASE(exports_that_cannot_be) {
    const TempFolder folder;
    const ModelFile good = random_source(folder);
    const auto refused = [&](auto change, const char* type = "q8_0") {
        ModelFile source = good;
        change(source.details);
        const auto plan = gguf_plan(source, *find_codec(type), {"x"});
        return plan ? std::string() : plan.error().message;
    };
    BOOST_TEST(refused([](ModelDetails&) {}).empty());
    BOOST_TEST(contains(refused([](ModelDetails&) {}, "q4"), "GGUF has no type q4"));
    BOOST_TEST(contains(refused([](ModelDetails& d) { d.tokenizer.clear(); }),
                        "comes without a tokenizer"));
    BOOST_TEST(contains(refused([](ModelDetails& d) { d.tokenizer = tiny_tokenizer(300); }),
                        "the tokenizer has 300 tokens, expected 288"));
    BOOST_TEST(contains(refused([](ModelDetails& d) {
                            d.config.rope_scaling = {RopeScaling::Type::llama3, 8, 1, 4, 8192};
                        }),
                        "llama3 RoPE scaling"));
}

BOOST_AUTO_TEST_CASE(damaged_exports_are_refused) {
    const TempFolder folder;
    ModelConfig config = small_config();
    config.layers = 1;
    config.vocab = 272;
    exported(folder, random_source(folder, config), "q4_0");
    const auto good = read_bytes(folder / "m.gguf");
    // The padding of the last tensor is the only part that may be missing.
    check_truncations({good.begin(), good.end() - 32}, outcome_of_gguf, 3000, 131);
    check_flips(good, outcome_of_gguf, 0, 1200);
    check_hostile(good, outcome_of_gguf, 16);
    // No tensors at all is a file of a tokenizer alone; any other number is wrong.
    check_hostile(good, outcome_of_gguf, 8, 8, true);
}

BOOST_AUTO_TEST_CASE(hostile_lengths) {
    BOOST_TEST(outcome_of(Builder().bytes()).empty());
    BOOST_TEST(outcome_of(Builder().string("a", "b").bytes(0, 2)).empty());
    BOOST_TEST(contains(outcome_of(Builder().bytes(0, 1)), "version 1 is not supported"));
    BOOST_TEST(contains(outcome_of(Builder().bytes(0, 0x03000000)), "big-endian"));
    for (const std::uint64_t count :
         {std::uint64_t{1} << 63, std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{100}}) {
        for (const GgufType type : {GgufType::string, GgufType::u8, GgufType::f64, GgufType::i16})
            BOOST_TEST(
                contains(outcome_of(Builder().array("a", type, count).bytes()), "key a announces"));
        BOOST_TEST(contains(outcome_of(Builder().key("a", GgufType::string).put(count).bytes()),
                            "a takes"));
        for (const std::size_t at : {8u, 16u}) {
            auto bytes = Builder().bytes();
            std::memcpy(bytes.data() + at, &count, 8);
            BOOST_TEST(contains(outcome_of(bytes), "the header announces"));
        }
    }
    Builder nested;
    nested.key("a", GgufType::array);
    for (int i = 0; i < 1000; ++i)
        nested.put(std::uint32_t{9}).put(std::uint64_t{1});
    BOOST_TEST(contains(outcome_of(nested.bytes()), "array of arrays"));
    BOOST_TEST(
        contains(outcome_of(Builder().key("a", GgufType{13}).put(0).bytes()), "unknown type 13"));
    BOOST_TEST(
        contains(outcome_of(Builder().array("a", GgufType{99}, 1).bytes()), "unknown type 99"));
    BOOST_TEST(contains(outcome_of(Builder().number("", 1).bytes()), "key 0 has 0 bytes"));
}

BOOST_AUTO_TEST_CASE(hostile_tensors) {
    const auto with = [](const std::vector<std::uint64_t>& ne, std::uint32_t type = 0) {
        return outcome_of(Builder().tensor("t", ne, 0, type).bytes(4096));
    };
    BOOST_TEST(with({32, 32}).empty());
    BOOST_TEST(with({32, 2, 2, 2}).empty());
    BOOST_TEST(contains(with({(std::uint64_t{1} << 42) + 1, 1152}), "tensor t"));
    BOOST_TEST(contains(with({~std::uint64_t{0}, 2}), "tensor t: dimension"));
    BOOST_TEST(contains(with({0, 5}), "tensor t: dimension 0 is 0"));
    BOOST_TEST(contains(with({5, 0}), "tensor t: dimension 1 is 0"));
    BOOST_TEST(contains(with({}), "tensor t: it has 0 dimensions"));
    BOOST_TEST(contains(with({1, 1, 1, 1, 1, 1, 1, 1, 1}), "tensor t: it has 9 dimensions"));
    BOOST_TEST(contains(with({33}, 8), "tensor t: it has 33 columns, expected a multiple of 32"));
    BOOST_TEST(contains(with({32}, 4), "tensor t: type 4 is not supported"));
    BOOST_TEST(contains(with({32}, 43), "tensor t: type 43 is not supported"));
    BOOST_TEST(contains(with({4096}), "tensor t has 16384 bytes"));
    Builder dims;
    dims.tensor("t", {});
    auto bytes = dims.bytes();
    const std::uint32_t many = ~0u;
    std::memcpy(bytes.data() + 24 + 8 + 1, &many, 4);
    BOOST_TEST(contains(outcome_of(bytes), "4294967295 dimensions"));

    BOOST_TEST(outcome_of(Builder().tensor("a", {9}).tensor("b", {8}, 64).bytes(96)).empty());
    for (const std::uint64_t offset :
         {std::uint64_t{0}, std::uint64_t{36}, std::uint64_t{96}, ~std::uint64_t{31}})
        BOOST_TEST(
            contains(outcome_of(Builder().tensor("a", {9}).tensor("b", {8}, offset).bytes(96)),
                     "tensor b has offset"));
    BOOST_TEST(contains(outcome_of(Builder().tensor("a", {8}).tensor("a", {8}, 32).bytes(96)),
                        "tensor a is there twice"));
    BOOST_TEST(contains(outcome_of(Builder().tensor(std::string(64, 'n'), {8}).bytes(96)),
                        "its name has 64 bytes"));
    BOOST_TEST(contains(outcome_of(Builder().number("k", 1).number("k", 1).bytes()),
                        "key k is there twice"));
}

BOOST_AUTO_TEST_CASE(alignments) {
    for (const std::uint32_t good : {32u, 64u, 1u, 4096u})
        BOOST_TEST(outcome_of(Builder()
                                  .align(good)
                                  .number("general.alignment", good)
                                  .tensor("t", {32})
                                  .bytes(128))
                       .empty());
    for (const std::uint32_t bad : {0u, 3u, 1u << 30})
        BOOST_TEST(contains(outcome_of(Builder().number("general.alignment", bad).bytes()),
                            "general.alignment is"));
    BOOST_TEST(contains(outcome_of(Builder().string("general.alignment", "32").bytes()),
                        "general.alignment has type string, expected u32"));
}

BOOST_AUTO_TEST_CASE(counts_that_do_not_fit_a_llama) {
    const auto llama = [] { return Builder().string("general.architecture", "llama"); };
    const auto two_blocks = [](Builder b) {
        return outcome_of(b.tensor("blk.0.a", {8}).tensor("blk.1.a", {8}, 32).bytes(64));
    };
    BOOST_TEST(two_blocks(llama().number("llama.block_count", 2)).empty());
    BOOST_TEST(contains(two_blocks(llama().number("llama.block_count", 100000)),
                        "llama.block_count is 100000, expected 2"));
    BOOST_TEST(contains(two_blocks(llama().number("llama.block_count", 1)), "expected 2"));
    BOOST_TEST(contains(outcome_of(llama().tensor("blk.99999999999.a", {8}).bytes(32)),
                        "has no block number"));
    BOOST_TEST(
        contains(outcome_of(llama().tensor("blk.-1.a", {8}).bytes(32)), "has no block number"));

    const auto token = [&](std::string_view text, std::int32_t kind) {
        return outcome_of(llama()
                              .array("tokenizer.ggml.tokens", GgufType::string, 1)
                              .text(text)
                              .array("tokenizer.ggml.token_type", GgufType::i32, 1)
                              .put(kind)
                              .bytes());
    };
    BOOST_TEST(token("<0x0A>", 6).empty());
    BOOST_TEST(token("<0xGG>", 1).empty());
    for (const char* bad : {"<0x-1>", "<0xGG>", "<0x>", "", "<0x100>"})
        BOOST_TEST(contains(token(bad, 6), "expected <0x00> to <0xFF>"));
    BOOST_TEST(contains(outcome_of(llama()
                                       .array("tokenizer.ggml.tokens", GgufType::string, 1)
                                       .text("a")
                                       .tensor("token_embd.weight", {4, 2})
                                       .bytes(32)),
                        "token_embd.weight has 2 rows, expected 1"));
}

BOOST_AUTO_TEST_CASE(a_key_is_never_written_twice) {
    GgufKeys keys;
    keys.add("a", std::uint32_t{1});
    const std::size_t size = keys.bytes().size();
    keys.add("a", "text");
    BOOST_TEST(keys.count() == 1u);
    BOOST_TEST(keys.bytes().size() == size);
}
