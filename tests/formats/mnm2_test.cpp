// SPDX-License-Identifier: MIT
// Version 2: what goes in comes out, and nothing damaged is believed.
#include "tests/formats/damage.h"
#include "tests/formats/mnm2_surgery.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(mnm2_test)

namespace {

ModelDetails full_details(const ModelConfig& config) {
    ModelDetails details;
    details.config = config;
    details.config.rope_base = 123456.789;
    details.config.norm_eps = 1e-6;
    details.config.rope_scaling = {RopeScaling::Type::llama3, 8.0, 1.0, 4.0, 8192};
    details.tokenizer = tiny_tokenizer(static_cast<std::uint32_t>(config.vocab));
    details.tokenizer_hash = 0xfedcba9876543210;
    details.chat_template = "{% for m in messages %}\n{{ m.content }}{% endfor %}";
    details.sampling = SamplingDefaults{0.25, 0.95, 40, 1000};
    details.metadata = {{"author", "Bj\xc3\xb6rk \"B\""}, {"note", "a\nb"}, {"author", "second"}};
    return details;
}

ModelConfig tiny_config() {
    ModelConfig config = small_config();
    config.layers = 1;
    config.width = config.ffn = 32;
    config.heads = config.kv_heads = 2;
    config.vocab = 272;
    return config;
}

/// A random source, and a version 2 file made from it in mixed types.
struct Sample {
    TempFolder folder;
    ModelFile source;
    WritePlan plan;
    std::string path;
    std::vector<std::byte> bytes;

    explicit Sample(const ModelConfig& config, bool full = true) : path(folder / "m.mnm") {
        auto opened = open_model(write_random_checkpoint(folder / "a.ckpt", config, 5));
        BOOST_REQUIRE(opened);
        source = std::move(*opened);
        plan.details = full ? full_details(config) : source.details;
        plan.tensors = standard_tensors(config, *find_codec("q4"));
        const auto all = codecs();
        for (std::size_t i = 0; i < 5; ++i)
            plan.tensors[i].codec = &all[(i + 1) % all.size()];
        write();
    }
    void write() {
        const Result<void> written = write_model(path, "mnm2", source, plan);
        BOOST_REQUIRE_MESSAGE(written, why(written));
        bytes = read_bytes(path);
    }
};

bool contains(const std::string& text, std::string_view part) {
    BOOST_TEST_INFO(text);
    return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(everything_comes_back) {
    const Sample sample(small_config());
    const auto model = open_model(sample.path);
    BOOST_REQUIRE_MESSAGE(model, why(model));
    const ModelDetails& in = sample.plan.details;
    const ModelDetails& out = model->details;
    BOOST_TEST(model->format == "mnm2");
    BOOST_TEST((out.config == in.config));
    BOOST_TEST((out.tokenizer == in.tokenizer));
    BOOST_TEST(out.tokenizer_hash == in.tokenizer_hash);
    BOOST_TEST(out.chat_template == in.chat_template);
    BOOST_TEST((out.sampling == in.sampling));
    BOOST_TEST((out.metadata == in.metadata));
    BOOST_TEST(model->uniform_codec() == nullptr);
    BOOST_TEST(verify_tensors(*model).operator bool());

    const EncodeRows encode = encode_from(sample.source, sample.plan);
    BOOST_REQUIRE(model->tensors.size() == sample.plan.tensors.size());
    for (std::size_t i = 0; i < model->tensors.size(); ++i) {
        const TensorView& tensor = model->tensors[i];
        const PlannedTensor& planned = sample.plan.tensors[i];
        BOOST_TEST(tensor.name == planned.name);
        BOOST_TEST(tensor.codec == planned.codec);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(tensor.data) % 64 == 0u);
        std::vector<std::byte> data(tensor.rows * tensor.codec->data_row_bytes(tensor.cols));
        std::vector<std::byte> scales(tensor.rows * tensor.codec->scale_row_bytes(tensor.cols));
        BOOST_REQUIRE(encode(i, 0, tensor.rows, data.data(), scales.data()));
        BOOST_TEST(std::equal(data.begin(), data.end(), tensor.data), tensor.name);
        BOOST_TEST((tensor.scales == nullptr) == scales.empty());
        if (!scales.empty()) BOOST_TEST(std::equal(scales.begin(), scales.end(), tensor.scales));
    }
}

BOOST_AUTO_TEST_CASE(an_untied_head_and_a_wide_head_dim) {
    const TempFolder folder;
    const auto source = open_model(write_random_checkpoint(folder / "a.ckpt", small_config(), 5));
    BOOST_REQUIRE(source);
    WritePlan plan{source->details, {}};
    plan.details.config.head_dim = 24;
    plan.details.config.tied_head = false;
    plan.tensors = standard_tensors(plan.details.config, *find_codec("q8"));
    BOOST_TEST(plan.tensors.back().name == "output.weight");
    const EncodeRows encode = [&](std::size_t i, std::uint64_t row, std::uint64_t rows,
                                  std::byte* data, std::byte* scales) -> Result<void> {
        const PlannedTensor& tensor = plan.tensors[i];
        std::vector<float> x(rows * tensor.cols, static_cast<float>(i + row));
        tensor.codec->encode(x.data(), rows, tensor.cols, {}, data, scales);
        return {};
    };
    auto out = AtomicFile::create(folder / "m");
    BOOST_REQUIRE(out);
    BOOST_REQUIRE(find_format("mnm2")->write(*out, plan, encode));
    BOOST_REQUIRE(out->commit());
    const auto model = open_model(folder / "m");
    BOOST_REQUIRE_MESSAGE(model, why(model));
    BOOST_TEST((model->details.config == plan.details.config));
    BOOST_TEST(model->find("output.weight") != nullptr);
    BOOST_TEST(model->find("blk.0.attn_output.weight")->cols == 96u);
    BOOST_TEST(model->uniform_codec() == find_codec("q8"));
    BOOST_TEST(!model->details.sampling.has_value());
    // Version 1 has no place for this.
    auto old = AtomicFile::create(folder / "old");
    BOOST_TEST(!find_format("mnm1")->write(*old, plan, encode));
}

BOOST_AUTO_TEST_CASE(damage_outside_the_weights_is_seen) {
    const Sample sample(tiny_config());
    check_truncations(sample.bytes, outcome_of_model, 5000, 97);
    const Surgery file(sample.bytes);
    const std::size_t weights = file.offset("weights");
    const std::size_t end = weights + file.size("weights");
    // Zeros between sections belong to nobody; everything else has a checksum.
    const std::size_t table_end = file.offset("tensors") + file.size("tensors");
    const std::size_t last = file.offset("metadata") + file.size("metadata");
    const auto unused = [&](std::size_t at) {
        for (const char* name : {"config", "tokenizer", "chat_template", "sampling", "metadata"})
            if (at >= file.offset(name) && at < file.offset(name) + file.size(name)) return false;
        return at < last ? at >= mnm2::header_size
                         : at >= table_end && at < (table_end + 63) / 64 * 64;
    };
    check_flips(sample.bytes, outcome_of_model, 0, last, unused);
    check_flips(sample.bytes, outcome_of_model, end, sample.bytes.size(), unused);
    std::vector<std::byte> longer = sample.bytes;
    longer.push_back(std::byte{0});
    write_bytes(sample.folder / "long", longer);
    BOOST_TEST(outcome_of_model(sample.folder / "long").has_value());
}

BOOST_AUTO_TEST_CASE(damage_in_the_weights_is_found_and_named) {
    const Sample sample(tiny_config());
    const auto good = open_model(sample.path);
    BOOST_REQUIRE(good);
    for (const TensorView& tensor : good->tensors) {
        std::vector<std::byte> bad = sample.bytes;
        const std::size_t at = tensor.data - good->mapping->bytes().data();
        bad[at + 7] ^= std::byte{4};
        write_bytes(sample.folder / "bad", bad);
        const auto model = open_model(sample.folder / "bad");
        BOOST_REQUIRE_MESSAGE(model, why(model));
        const Result<void> verified = verify_tensors(*model);
        BOOST_REQUIRE(!verified);
        BOOST_TEST(contains(verified.error().message, "tensor " + tensor.name + " is damaged"));
    }
}

BOOST_AUTO_TEST_CASE(hostile_directories_are_refused) {
    const Sample sample(tiny_config());
    const Surgery good(sample.bytes);
    BOOST_TEST(Surgery(good).outcome().empty());
    const std::uint64_t numbers[] = {0,
                                     1,
                                     std::uint64_t{1} << 42,
                                     std::uint64_t{1} << 63,
                                     ~std::uint64_t{0},
                                     ~std::uint64_t{0} - 63};
    const auto hostile = [&](std::uint64_t at, std::string_view what) {
        for (const std::uint64_t number : numbers)
            BOOST_TEST(!Surgery(good).set(at, number).outcome().empty(), what << " " << number);
    };
    for (const char* name : {"config", "tensors", "weights"}) {
        hostile(good.entry(name) + 24, std::string(name) + " offset");
        hostile(good.entry(name) + 32, std::string(name) + " size");
    }
    const std::uint64_t tensor = good.offset("tensors");
    for (std::uint64_t field = 80; field < 112; field += 8)
        hostile(tensor + field, "tensor field at " + std::to_string(field));
    BOOST_TEST(contains(Surgery(good).set_text(tensor, "other.weight", 64).outcome(), "unknown"));
    BOOST_TEST(contains(Surgery(good).set_text(tensor + 64, "q9", 16).outcome(),
                        "tensor token_embd.weight: type q9 is not supported"));
    // The second tensor under the name of the first, or in its place.
    BOOST_TEST(contains(Surgery(good).set_text(tensor + 120, "token_embd.weight", 64).outcome(),
                        "there twice"));
    BOOST_TEST(contains(Surgery(good).set(tensor + 120 + 96, good.offset("weights")).outcome(),
                        "inside token_embd.weight"));
    BOOST_TEST(contains(Surgery(good).set_text(good.entry("metadata"), "sampling", 16).outcome(),
                        "two sections sampling"));
    BOOST_TEST(
        contains(Surgery(good).set(good.entry("sampling") + 24, good.offset("config")).outcome(),
                 "inside config"));
    for (const char* name : {"config", "weights", "tensors"})
        BOOST_TEST(!Surgery(good).set_text(good.entry(name), "x", 16).outcome().empty());
}

BOOST_AUTO_TEST_CASE(unknown_sections) {
    const Sample sample(tiny_config());
    const Surgery good(sample.bytes);
    const std::uint64_t entry = good.entry("sampling");
    BOOST_TEST(Surgery(good).set_text(entry, "future", 16).outcome().empty());
    BOOST_TEST(contains(Surgery(good).set_text(entry, "future", 16).set(entry + 16, 1u).outcome(),
                        "section future is not supported"));
    BOOST_TEST(contains(Surgery(good).set_text(entry, "a\nb", 16).set(entry + 16, 1u).outcome(),
                        "section a?b is not supported"));
    // A later minor version is read as far as it is known.
    BOOST_TEST(Surgery(good).set(8, 7u).outcome().empty());
}

BOOST_AUTO_TEST_CASE(json_of_every_wrong_kind) {
    const Sample sample(tiny_config());
    const Surgery good(sample.bytes);
    for (const char* text : {"", "{", "[]", "null", "{}", "7", "\"\xff\"", "{\"layers\":-1}",
                             "{\"layers\":1.5}", "{\"layers\":\"1\"}", "{\"layers\":1e999}"})
        BOOST_TEST(!Surgery(good).replace("config", text).outcome().empty(), text);
    BOOST_TEST(
        !Surgery(good).replace("config", std::string(good.size("config"), '[')).outcome().empty());
    BOOST_TEST(contains(Surgery(good).replace("config", "{\"layers\":1e99}").outcome(),
                        "section config: layers is 1e+99, expected a whole number"));
    for (const char* text : {"", "[]", "{\"temperature\":-1}", "{\"temperature\":\"x\"}"})
        BOOST_TEST(!Surgery(good).replace("sampling", text).outcome().empty(), text);
    for (const char* text : {"", "{}", "[1]", "[[\"a\"]]", "[[\"a\",1]]", "[[\"a\",\"b\",\"c\"]]"})
        BOOST_TEST(!Surgery(good).replace("metadata", text).outcome().empty(), text);
    BOOST_TEST(Surgery(good).replace("metadata", "[]").outcome().empty());
}

BOOST_AUTO_TEST_CASE(writing_checks_what_it_is_given) {
    Sample sample(tiny_config());
    const auto refused = [&](WritePlan plan) {
        const Result<void> written = write_model(sample.folder / "w", "mnm2", sample.source, plan);
        return written ? std::string() : written.error().message;
    };
    WritePlan plan = sample.plan;
    plan.details.metadata.emplace_back("bad", "\xff");
    BOOST_TEST(contains(refused(plan), "metadata entry 3 is not valid UTF-8"));
    plan = sample.plan;
    plan.details.chat_template = std::string(2 << 20, 'x');
    BOOST_TEST(contains(refused(plan), "section chat_template has 2097152 bytes"));
    plan = sample.plan;
    plan.tensors[2].rows += 1;
    BOOST_TEST(!refused(plan).empty());
    plan = sample.plan;
    plan.tensors.back().codec = find_codec("q8");
    BOOST_TEST(contains(refused(plan), "expected f32 for a norm"));
    plan = sample.plan;
    plan.details.tokenizer = tiny_tokenizer(300);
    BOOST_TEST(refused(plan).empty());
    BOOST_TEST(contains(*outcome_of_model(sample.folder / "w"),
                        "the tokenizer has 300 tokens, expected 272 as the model"));
    // An encoder's error ends the writing, and no file is left.
    std::filesystem::remove(sample.folder / "w");
    auto out = AtomicFile::create(sample.folder / "w");
    const Result<void> failed = find_format("mnm2")->write(
        *out, sample.plan,
        [](std::size_t i, std::uint64_t, std::uint64_t, std::byte*, std::byte*) -> Result<void> {
            if (i == 3) return Error{"row 3"};
            return {};
        });
    BOOST_REQUIRE(!failed);
    BOOST_TEST(failed.error().message == "row 3");
}

BOOST_AUTO_TEST_CASE(the_smallest_file) {
    const Sample sample(tiny_config(), false);
    const auto model = open_model(sample.path);
    BOOST_REQUIRE(model);
    BOOST_TEST(model->details.tokenizer.empty());
    BOOST_TEST(model->details.chat_template.empty());
    BOOST_TEST(model->details.metadata.empty());
    BOOST_TEST(load<std::uint32_t>(sample.bytes, 12) == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
