// SPDX-License-Identifier: MIT
// The trainer's tokenizer: ids and chunks of awkward texts, of replies and of held-out documents.
#include "engine/tokenizer.h"
#include "tests/fixtures.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <iterator>

using namespace mnm;

BOOST_AUTO_TEST_SUITE(tokenizer_fixture_test)

namespace {

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

Tokenizer load() {
    const std::string path = tests::tales("tokenizer.bin");
    const std::string bytes = read(path);
    Result<TokenizerFile> file = parse_tokenizer(std::as_bytes(std::span(bytes)), path);
    BOOST_REQUIRE_MESSAGE(file, "cannot parse " << path);
    return Tokenizer(*std::move(file));
}

nlohmann::json reference() {
    return nlohmann::json::parse(read(tests::tales("reference.json")));
}

} // namespace

BOOST_AUTO_TEST_CASE(awkward_texts_get_the_reference_ids_and_chunks) {
    const Tokenizer tokenizer = load();
    int texts = 0;
    const nlohmann::json all = reference();
    for (const nlohmann::json& entry : all.at("encode")) {
        const auto text = entry.at("text").get<std::string>();
        BOOST_TEST_CONTEXT("text \"" << text << '"') {
            const auto ids = tokenizer.encode(text);
            BOOST_TEST(ids == entry.at("ids").get<std::vector<TokenId>>(),
                       boost::test_tools::per_element());
            BOOST_TEST(tokenizer.decode(ids) == text);
            std::vector<std::string> chunks;
            for (std::string_view rest = text; !rest.empty();) {
                chunks.emplace_back(Tokenizer::next_chunk(rest));
                rest.remove_prefix(chunks.back().size());
            }
            BOOST_TEST(chunks == entry.at("chunks").get<std::vector<std::string>>(),
                       boost::test_tools::per_element());
        }
        ++texts;
    }
    BOOST_TEST(texts >= 18);
}

BOOST_AUTO_TEST_CASE(replies_decode_to_the_reference_text) {
    const Tokenizer tokenizer = load();
    const nlohmann::json all = reference();
    for (const nlohmann::json& entry : all.at("greedy")) {
        const auto ids = entry.at("reply_ids").get<std::vector<TokenId>>();
        BOOST_TEST(tokenizer.decode(ids) == entry.at("reply").get<std::string>());
    }
}

// The trainer's own ids of held-out text: between two specials stands one encoded text.
BOOST_AUTO_TEST_CASE(held_out_documents_encode_to_the_trainer_s_ids) {
    const Tokenizer tokenizer = load();
    const std::string stream = read(tests::tales("val.tok"));
    std::vector<TokenId> document;
    std::size_t compared = 0;
    const auto compare = [&] {
        BOOST_TEST(tokenizer.encode(tokenizer.decode(document)) == document,
                   boost::test_tools::per_element());
        compared += document.size();
        document.clear();
    };
    for (std::size_t at = 64; at + 2 <= stream.size(); at += 2) {
        std::uint16_t id = 0;
        std::memcpy(&id, stream.data() + at, 2);
        if (tokenizer.is_special(id))
            compare();
        else
            document.push_back(id);
    }
    compare();
    BOOST_TEST(compared > 9000U);
}

BOOST_AUTO_TEST_SUITE_END()
