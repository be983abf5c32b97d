// SPDX-License-Identifier: MIT
// Checkpoints, version 1 models, tokenizers and token streams: good ones open, damaged ones are
// refused.
#include "tests/formats/damage.h"

#include "formats/token_stream.h"
#include "formats/tokenizer_file.h"

#include <boost/test/unit_test.hpp>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(readers_test)

namespace {

ModelConfig tiny_config() {
    ModelConfig config = small_config();
    config.layers = 1;
    config.width = config.ffn = 32;
    config.heads = config.kv_heads = 2;
    config.vocab = 8;
    return config;
}

std::optional<std::string> outcome_of_tokenizer(const std::string& path) {
    const auto file = parse_tokenizer(read_bytes(path), path);
    return file ? std::nullopt : std::optional(file.error().message);
}

std::optional<std::string> outcome_of_stream(const std::string& path) {
    const auto stream = TokenStream::open(path);
    return stream ? std::nullopt : std::optional(stream.error().message);
}

std::vector<std::byte> token_stream(bool chat, const std::vector<std::uint16_t>& tokens,
                                    std::uint64_t vocab = 300) {
    std::vector<std::byte> out(64 + 2 * tokens.size());
    const std::uint64_t fields[] = {tokens.size(), 1, vocab, 7, chat ? 1u : 0u, 0};
    std::memcpy(out.data(), "MNTOKEN1", 8);
    std::memcpy(out.data() + 8, fields, sizeof fields);
    std::memcpy(out.data() + 64, tokens.data(), 2 * tokens.size());
    return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(checkpoints_open) {
    const TempFolder folder;
    const ModelConfig config = small_config();
    for (const bool moments : {false, true}) {
        const auto model =
            open_model(write_random_checkpoint(folder / "a.ckpt", config, 1, moments));
        BOOST_REQUIRE_MESSAGE(model, why(model));
        BOOST_TEST(model->format == "ckpt");
        BOOST_TEST((model->details.config == config));
        BOOST_TEST(model->uniform_codec() == find_codec("f32"));
        BOOST_TEST(model->bits_per_weight() == 32.0);
        BOOST_TEST(model->tensors.size() == 1u + 4 * 2 + 2 * 2 + 1);
        const TensorView* down = model->find("blk.1.ffn_down.weight");
        BOOST_REQUIRE(down != nullptr);
        BOOST_TEST(down->rows == 64u);
        BOOST_TEST(down->cols == 96u);
        BOOST_TEST(model->find("output.weight") == nullptr);
        const std::byte* first = model->mapping->bytes().data() + 4096;
        BOOST_TEST(model->find("token_embd.weight")->data == first);
        BOOST_TEST(model->find("output_norm.weight")->data ==
                   first + 4 * (config.parameters() - config.width));
        BOOST_TEST(verify_tensors(*model).operator bool());
    }
}

BOOST_AUTO_TEST_CASE(damaged_checkpoints_are_refused) {
    const TempFolder folder;
    const auto good = read_bytes(write_random_checkpoint(folder / "a.ckpt", tiny_config(), 1));
    check_truncations(good, outcome_of_model, 4200, 97);
    for (std::size_t at = 8; at <= 64; at += 8) {
        if (at == 56) continue; // the context alone changes no size
        check_hostile(good, outcome_of_model, at);
    }
    check_flips(good, outcome_of_model, 0, 200);
    std::vector<std::byte> longer = good;
    longer.push_back(std::byte{0});
    write_bytes(folder / "long", longer);
    BOOST_TEST(outcome_of_model(folder / "long").has_value());
}

BOOST_AUTO_TEST_CASE(version_1_round_trips) {
    const TempFolder folder;
    ModelConfig config = small_config();
    auto source = open_model(write_random_checkpoint(folder / "a.ckpt", config, 2));
    BOOST_REQUIRE(source);
    source->details.config.rope_base = config.rope_base = 500000;
    source->details.tokenizer_hash = 0x123456789abcdef0;
    for (const char* type : {"f32", "q8", "q4"}) {
        const std::string path = folder / type;
        BOOST_REQUIRE(write_model(path, "mnm1", *source, *find_codec(type)));
        const auto model = open_model(path);
        BOOST_REQUIRE_MESSAGE(model, why(model));
        BOOST_TEST(model->format == "mnm1");
        BOOST_TEST((model->details.config == config));
        BOOST_TEST(model->details.tokenizer_hash == 0x123456789abcdef0u);
        BOOST_TEST(model->uniform_codec() == find_codec(type));
        // Written again from itself, every type gives the same bytes: nothing is rounded twice.
        if (type == std::string("f32")) {
            BOOST_REQUIRE(write_model(folder / "again", "mnm1", *model, *find_codec(type)));
            BOOST_TEST((read_bytes(folder / "again") == read_bytes(path)));
        }
        for (const TensorView& tensor : model->tensors)
            BOOST_TEST((tensor.data - model->mapping->bytes().data()) % 64 == 0);
    }
}

BOOST_AUTO_TEST_CASE(damaged_version_1_files_are_refused) {
    const TempFolder folder;
    const auto source = open_model(write_random_checkpoint(folder / "a.ckpt", tiny_config(), 1));
    BOOST_REQUIRE(source);
    for (const char* type : {"f32", "q8", "q4"}) {
        BOOST_REQUIRE(write_model(folder / "m", "mnm1", *source, *find_codec(type)));
        const auto good = read_bytes(folder / "m");
        check_truncations(good, outcome_of_model, 0, 41);
        for (std::size_t at = 8; at <= 72; at += 8)
            if (at != 64 && at != 72) check_hostile(good, outcome_of_model, at);
        check_flips(good, outcome_of_model, 0, 100);
    }
}

BOOST_AUTO_TEST_CASE(version_1_says_what_it_cannot_hold) {
    const TempFolder folder;
    auto source = open_model(write_random_checkpoint(folder / "a.ckpt", small_config(), 1));
    BOOST_REQUIRE(source);
    const auto refused = [&](const WritePlan& plan) {
        const Result<void> written = write_model(folder / "m", "mnm1", *source, plan);
        return written ? std::string() : written.error().message;
    };
    const WritePlan good{source->details,
                         standard_tensors(source->details.config, *find_codec("q8"))};
    BOOST_TEST(refused(good).empty());
    WritePlan plan = good;
    plan.tensors[3].codec = find_codec("q4");
    BOOST_TEST(refused(plan).find("q8 and q4") != std::string::npos);
    plan = {good.details, standard_tensors(good.details.config, *find_codec("f16"))};
    BOOST_TEST(refused(plan).find("not f16") != std::string::npos);
    plan = good;
    plan.details.config.norm_eps = 1e-6;
    BOOST_TEST(refused(plan).find("epsilon") != std::string::npos);
    plan = good;
    std::swap(plan.tensors[1], plan.tensors[2]);
    BOOST_TEST(refused(plan).find("expected blk.0.attn_qkv.weight") != std::string::npos);
    plan = good;
    plan.tensors.pop_back();
    BOOST_TEST(refused(plan).find("lacks tensor output_norm.weight") != std::string::npos);
    BOOST_TEST(folder.list().size() == 2u);
}

BOOST_AUTO_TEST_CASE(shapes_have_limits) {
    const auto message = [](auto change) {
        ModelConfig config = small_config();
        change(config);
        const Result<void> checked = config.check("f");
        return checked ? std::string() : checked.error().message;
    };
    BOOST_TEST(message([](ModelConfig&) {}).empty());
    BOOST_TEST(message([](ModelConfig& c) { c.layers = 0; }) ==
               "f: layers is 0, expected 1 to 4096");
    BOOST_TEST(!message([](ModelConfig& c) { c.layers = 4097; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.head_dim = 15; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.head_dim = 20; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.heads = c.head_dim = 1 << 20; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.kv_heads = 3; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.width = 80; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.ffn = 33; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.rope_base = 0; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.rope_base = std::nan(""); }).empty());
    // A tiny base turns late positions by angles that no integer holds.
    BOOST_TEST(message([](ModelConfig& c) { c.rope_base = 5e-324; }) ==
               "f: RoPE base is 5e-324, expected 0.001 to 1000000000000");
    BOOST_TEST(message([](ModelConfig& c) { c.rope_base = 1e-3; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) { c.norm_eps = -1; }).empty());
    BOOST_TEST(!message([](ModelConfig& c) {
                    c.rope_scaling.type = RopeScaling::Type::linear;
                    c.rope_scaling.factor = 1e-300;
                }).empty());
    BOOST_TEST(!message([](ModelConfig& c) {
                    c.rope_scaling.type = RopeScaling::Type::linear;
                    c.rope_scaling.factor = 0;
                }).empty());
    BOOST_TEST(
        !message([](ModelConfig& c) { c.rope_scaling.type = RopeScaling::Type::llama3; }).empty());
}

BOOST_AUTO_TEST_CASE(tokenizers) {
    const auto good = tiny_tokenizer(300, 99);
    const auto file = parse_tokenizer(good, "t");
    BOOST_REQUIRE_MESSAGE(file, why(file));
    BOOST_TEST(file->vocab == 300u);
    BOOST_TEST(file->hash == 99u);
    BOOST_TEST(file->first_special == 284u);
    BOOST_TEST(file->merges.size() == 8u);
    BOOST_TEST(parse_tokenizer(tiny_tokenizer(272), "t")->merges.empty());
    check_truncations(good, outcome_of_tokenizer, 100, 1);
    check_flips(good, outcome_of_tokenizer, 0, good.size());
    for (std::size_t at = 8; at < 24; at += 4)
        check_hostile(good, outcome_of_tokenizer, at, 4);

    const auto with_merge = [&](std::size_t i, std::uint32_t a, std::uint32_t b) {
        std::vector<std::byte> bad = good;
        const std::uint32_t merge = a | b << 16;
        std::memcpy(bad.data() + 32 + 4 * i, &merge, 4);
        const auto parsed = parse_tokenizer(bad, "t");
        return parsed ? std::string() : parsed.error().message;
    };
    BOOST_TEST(with_merge(7, 'x', 'y').empty());
    BOOST_TEST(with_merge(3, 259, 'o').find("expected ids below 259") != std::string::npos);
    BOOST_TEST(with_merge(7, 'h', 'e') == "t: tokens 256 and 263 are spelt alike");
    // The same spelling by another way: "hell" + "o" is token 259 already.
    BOOST_TEST(with_merge(4, 'l', 'o').empty());
    BOOST_TEST(with_merge(7, 256, 'l').empty());
}

BOOST_AUTO_TEST_CASE(spellings_do_not_explode) {
    // Each merge doubles the one before: 2^40 bytes if anyone wrote it out.
    std::vector<std::byte> bytes = tiny_tokenizer(512);
    const std::uint32_t merges = 40;
    std::memcpy(bytes.data() + 12, &merges, 4);
    bytes.resize(32 + 4 * merges);
    for (std::uint32_t i = 0; i < merges; ++i) {
        const std::uint32_t id = i == 0 ? 'a' : 255 + i;
        const std::uint32_t merge = id | id << 16;
        std::memcpy(bytes.data() + 32 + 4 * i, &merge, 4);
    }
    const auto parsed = parse_tokenizer(bytes, "t");
    BOOST_REQUIRE(!parsed);
    BOOST_TEST(parsed.error().message == "t: token 266 is 2048 bytes long, expected at most 1024");
}

BOOST_AUTO_TEST_CASE(long_tokens_are_few) {
    // 64 chains of doubling, each to 1024 bytes: 64 x 2046 bytes in all, from 10 merges a chain.
    std::vector<std::byte> bytes = tiny_tokenizer(2048);
    const std::uint32_t chains = 64, merges = 10 * chains;
    std::memcpy(bytes.data() + 12, &merges, 4);
    bytes.resize(32 + 4 * merges);
    for (std::uint32_t i = 0; i < merges; ++i) {
        const std::uint32_t id = i % 10 == 0 ? i / 10 : 255 + i;
        const std::uint32_t merge = id | id << 16;
        std::memcpy(bytes.data() + 32 + 4 * i, &merge, 4);
    }
    const auto parsed = parse_tokenizer(bytes, "t");
    BOOST_REQUIRE(!parsed);
    BOOST_TEST(parsed.error().message ==
               "t: the tokens are 130944 bytes long together, expected at most 106496");
}

BOOST_AUTO_TEST_CASE(token_streams) {
    const TempFolder folder;
    const auto good = token_stream(true, {1, 2, 0x8003, 299, 0x8000 | 299, 0, 5});
    for (const std::size_t more : {1u, 2u}) {
        std::vector<std::byte> longer = good;
        for (std::size_t i = 0; i < more; ++i)
            longer.push_back(std::byte{0});
        write_bytes(folder / "long.tok", longer);
        BOOST_TEST(*outcome_of_stream(folder / "long.tok") ==
                   (folder / "long.tok") + ": " + std::to_string(more) +
                       " bytes follow the 7 tokens of the header, expected none");
    }
    write_bytes(folder / "a.tok", good);
    const auto stream = TokenStream::open(folder / "a.tok");
    BOOST_REQUIRE_MESSAGE(stream, why(stream));
    BOOST_TEST(stream->tokens.size() == 7u);
    BOOST_TEST(stream->chat);
    BOOST_TEST(stream->vocab == 300u);
    BOOST_TEST(stream->tokenizer_hash == 7u);
    check_truncations(good, outcome_of_stream, 100, 1);
    check_flips(good, outcome_of_stream, 0, good.size());
    for (const std::size_t at : {24u, 40u}) {
        std::vector<std::byte> bad = good;
        const std::uint64_t value = std::uint64_t{1} << 63;
        std::memcpy(bad.data() + at, &value, 8);
        write_bytes(folder / "bad.tok", bad);
        BOOST_TEST(outcome_of_stream(folder / "bad.tok").has_value());
    }
    write_bytes(folder / "id.tok", token_stream(false, {1, 300}));
    BOOST_TEST(*outcome_of_stream(folder / "id.tok") ==
               (folder / "id.tok") + ": token 1 has id 300, expected less than vocab, 300");
    write_bytes(folder / "big.tok", token_stream(false, {1, 65535}, 65536));
    BOOST_TEST(!outcome_of_stream(folder / "big.tok"));
}

BOOST_AUTO_TEST_SUITE_END()
