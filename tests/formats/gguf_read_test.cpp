// SPDX-License-Identifier: MIT
// GGUF files that must be refused, and their neighbours that must not.
#include "tests/formats/gguf_files.h"

#include <boost/test/unit_test.hpp>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(gguf_read_test)

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
    BOOST_TEST(with({32, 2, 4, 4}).empty());
    BOOST_TEST(contains(with({32, 31}), "128 bytes follow the last tensor"));
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

BOOST_AUTO_TEST_SUITE_END()
