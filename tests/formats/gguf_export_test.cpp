// SPDX-License-Identifier: MIT
// A GGUF export, read back value by value.
#include "tests/formats/gguf_files.h"

#include "formats/src/gguf_keys.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <set>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(gguf_export_test)

namespace {

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
    auto file = read_gguf_file(folder / "m.gguf");
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
    const auto file = read_gguf_file(folder / "wide.gguf");
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

BOOST_AUTO_TEST_CASE(a_key_is_never_written_twice) {
    GgufKeys keys;
    keys.add("a", std::uint32_t{1});
    const std::size_t size = keys.bytes().size();
    keys.add("a", "text");
    BOOST_TEST(keys.count() == 1u);
    BOOST_TEST(keys.bytes().size() == size);
}

BOOST_AUTO_TEST_SUITE_END()
