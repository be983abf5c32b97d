// SPDX-License-Identifier: MIT
// Version 1 files of the trained fixture, compared with hashes made by a separate program.
#include "tests/fixtures.h"
#include "tests/formats/sha256.h"
#include "tests/formats/synthetic.h"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <map>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(mnm1_fixture_test)

namespace {

std::map<std::string, std::string> expected_hashes() {
    std::ifstream in(tales("expected.sha256"));
    std::map<std::string, std::string> hashes;
    std::string hash, name;
    while (in >> hash >> name)
        hashes[name] = hash;
    return hashes;
}

struct Case {
    const char* name;
    WeightType type;
    bool fit;
};

} // namespace

BOOST_AUTO_TEST_CASE(version_1_files_are_byte_exact) {
    const auto expected = expected_hashes();
    Result<ModelFile> source = open_model(tales("chat.ckpt"));
    BOOST_REQUIRE_MESSAGE(source, why(source));
    std::memcpy(&source->details.tokenizer_hash, read_bytes(tales("tokenizer.bin")).data() + 24, 8);
    const TempFolder folder;
    for (const Case& test :
         {Case{"chat-f32.mnm", WeightType::f32, true}, Case{"chat-q8.mnm", WeightType::q8, true},
          Case{"chat-q4.mnm", WeightType::q4, true},
          Case{"chat-q4-nofit.mnm", WeightType::q4, false}}) {
        const std::string path = folder / test.name;
        const Result<void> written =
            write_model(path, "mnm1", *source, codec(test.type), {.fit = test.fit});
        BOOST_REQUIRE_MESSAGE(written, why(written));
        BOOST_TEST(sha256(read_bytes(path)) == expected.at(test.name), test.name);
    }
}

BOOST_AUTO_TEST_SUITE_END()
