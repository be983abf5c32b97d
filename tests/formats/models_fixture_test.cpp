// SPDX-License-Identifier: MIT
// The trained fixture through every format: sizes are known, nothing is lost, damage is refused.
#include "tests/fixtures.h"
#include "tests/formats/damage.h"

#include "formats/gguf.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(models_fixture_test)

namespace {

ModelFile chat_model() {
    auto source = open_model(tales("chat.ckpt"));
    BOOST_REQUIRE_MESSAGE(source, why(source));
    source->details.tokenizer = read_bytes(tales("tokenizer.bin"));
    return std::move(*source);
}

} // namespace

BOOST_AUTO_TEST_CASE(checkpoints_open) {
    for (const char* name : {"base.ckpt", "chat.ckpt"}) {
        const auto model = open_model(tales(name));
        BOOST_REQUIRE_MESSAGE(model, why(model));
        BOOST_TEST(model->details.config.parameters() == 1967808u);
        BOOST_TEST(model->details.config.head_dim == 64u);
        BOOST_TEST(model->details.config.kv_heads == 1u);
    }
}

BOOST_AUTO_TEST_CASE(a_large_file_cut_anywhere_is_refused) {
    const TempFolder folder;
    const ModelFile source = chat_model();
    for (const char* format : {"mnm1", "mnm2"}) {
        BOOST_REQUIRE(write_model(folder / "m", format, source, *find_codec("q4")));
        check_truncations(read_bytes(folder / "m"), outcome_of_model, 0, 30011);
    }
}

BOOST_AUTO_TEST_CASE(version_2_holds_the_bytes_of_version_1) {
    const TempFolder folder;
    const ModelFile source = chat_model();
    for (const char* type : {"f32", "q8", "q4"}) {
        BOOST_REQUIRE(write_model(folder / "1", "mnm1", source, *find_codec(type)));
        BOOST_REQUIRE(write_model(folder / "2", "mnm2", source, *find_codec(type)));
        const auto one = open_model(folder / "1");
        const auto two = open_model(folder / "2");
        BOOST_REQUIRE((one && two));
        BOOST_TEST(verify_tensors(*two).operator bool());
        BOOST_TEST((two->details.tokenizer == source.details.tokenizer));
        BOOST_TEST(one->bits_per_weight() == two->bits_per_weight());
        for (const TensorView& a : one->tensors) {
            const TensorView& b = *two->find(a.name);
            const std::uint64_t data = a.rows * a.codec->data_row_bytes(a.cols);
            const std::uint64_t scales = a.rows * a.codec->scale_row_bytes(a.cols);
            BOOST_TEST(std::memcmp(a.data, b.data, data) == 0);
            BOOST_TEST((scales == 0 || std::memcmp(a.scales, b.scales, scales) == 0));
        }
    }
}

BOOST_AUTO_TEST_CASE(gguf_holds_the_rows_of_the_checkpoint) {
    const TempFolder folder;
    const ModelFile source = chat_model();
    for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
        const auto plan = gguf_plan(source, *find_codec(type), {"tales"});
        BOOST_REQUIRE_MESSAGE(plan, why(plan));
        BOOST_REQUIRE(write_model(folder / "m.gguf", "gguf", source, *plan));
        const auto mapping = MappedFile::open(folder / "m.gguf");
        const auto file = read_gguf(*mapping);
        BOOST_REQUIRE_MESSAGE(file, why(file));
        BOOST_TEST(file->array("tokenizer.ggml.tokens")->count == 2048u);
        BOOST_TEST(file->array("tokenizer.ggml.merges")->count == 1776u);
        const EncodeRows encode = encode_from(source, *plan);
        for (std::size_t i = 0; i < plan->tensors.size(); ++i) {
            const PlannedTensor& planned = plan->tensors[i];
            std::vector<std::byte> rows(planned.rows * planned.codec->data_row_bytes(planned.cols));
            BOOST_REQUIRE(encode(i, 0, planned.rows, rows.data(), nullptr));
            const GgufTensor& tensor = file->tensors[i];
            BOOST_TEST(tensor.name == planned.name);
            BOOST_REQUIRE(tensor.bytes == rows.size());
            BOOST_TEST(std::memcmp(tensor.data, rows.data(), rows.size()) == 0);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
