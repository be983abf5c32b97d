// SPDX-License-Identifier: MIT
// Damaged model files of every format: refused with a message, or as good as the whole one.
#include "tests/engine/models.h"
#include "tests/formats/mnm2_surgery.h"
#include "tests/hostile/trial.h"

#include "formats/gguf.h"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <memory>

using namespace mnm;
using namespace mnm::tests;
using Must = Trial::Must;

BOOST_AUTO_TEST_SUITE(models_test)

namespace {

constexpr std::uint64_t context_limit = 1 << 24;

/// 1 layer x 32; `vocab` of 272 has room for a tokenizer.
ModelConfig tiny(std::uint64_t vocab) {
    ModelConfig config = small_config();
    config.layers = 1;
    config.width = config.ffn = 32;
    config.heads = config.kv_heads = 2;
    config.vocab = vocab;
    return config;
}

/// Opened, every weight compared with its checksum, bound to the layers.
std::optional<std::string> read_model(const std::string& path) {
    auto file = open_model(path);
    if (!file) return file.error().message;
    if (const auto verified = verify_tensors(*file); !verified) return verified.error().message;
    const auto model = Model::bind(std::move(*file));
    return model ? std::nullopt : std::optional(model.error().message);
}

/// The logits after the first of two tokens (one, where the context is no longer), or why there are
/// none.
Result<std::vector<float>> logits_of(const std::string& path) {
    static Parallel parallel(1);
    MNM_TRY(const Model model, Model::open(path));
    MNM_TRY(Session session, Session::create(model, kernels::best(), parallel));
    const TokenId tokens[] = {1, 2};
    std::vector<float> first;
    MNM_CHECK(session.forward_all(
        std::span(tokens).first(std::min<std::size_t>(2, model.config().context)),
        [&](std::size_t i, std::span<const float> logits) {
            if (i == 0) first.assign(logits.begin(), logits.end());
        }));
    return first;
}

/// For damage that no weight suffers: the first token's logits are those of the good file, to the
/// bit, or there is no memory for the context that the damaged header asks for.
std::function<void(const std::string&)> same_logits() {
    auto good = std::make_shared<std::vector<float>>();
    return [good](const std::string& path) {
        const auto found = logits_of(path);
        if (!found) {
            BOOST_REQUIRE_MESSAGE(found.error().message.find("not enough memory for a context") !=
                                      std::string::npos,
                                  found.error().message);
            return;
        }
        if (good->empty()) *good = *found;
        BOOST_REQUIRE(std::memcmp(good->data(), found->data(), 4 * good->size()) == 0);
    };
}

void finite_logits(const std::string& path) {
    const auto found = logits_of(path);
    if (!found) {
        check_message(found.error().message, path);
        return;
    }
    for (const float value : *found)
        BOOST_REQUIRE(std::isfinite(value));
}

Must context_rule(const std::vector<std::byte>& bytes, std::size_t at) {
    const auto context = load<std::uint64_t>(bytes, at);
    return context == 0 || context > context_limit ? Must::be_refused : Must::be_accepted;
}

ModelFile source_of(const TempFolder& folder, const ModelConfig& config) {
    return must(open_model(write_random_checkpoint(folder / "a.ckpt", config, 5)));
}

/// With all sections, and matrices in the three types that are run.
std::vector<std::byte> version_2(const TempFolder& folder) {
    const ModelFile source = source_of(folder, tiny(272));
    WritePlan plan{source.details, standard_tensors(source.details.config, *find_codec("q4"))};
    plan.tensors[0].codec = find_codec("q8");
    plan.tensors[1].codec = find_codec("f32");
    plan.details.tokenizer = tiny_tokenizer(272);
    plan.details.tokenizer_hash = 7;
    plan.details.chat_template = "{{ x }}";
    plan.details.sampling = SamplingDefaults{};
    plan.details.metadata = {{"author", "someone"}, {"note", "text"}};
    must(write_model(folder / "m.mnm", "mnm2", source, plan));
    return read_bytes(folder / "m.mnm");
}

} // namespace

BOOST_AUTO_TEST_CASE(checkpoints) {
    const TempFolder folder;
    write_random_checkpoint(folder / "a.ckpt", tiny(8), 5);
    Trial trial("checkpoint", read_bytes(folder / "a.ckpt"), read_model, same_logits());
    // Every number of the shape changes the size; what follows them is the trainer's own.
    const Trial::Rule rule = [](std::size_t at, const std::vector<std::byte>& bytes) {
        if (at >= 72) return Must::be_accepted;
        return at / 8 == 7 ? context_rule(bytes, 56) : Must::be_refused;
    };
    trial.cut();
    trial.flip(0, 160, rule);
    trial.flip(160, 4096, rule, 9);
    for (std::size_t at = 8; at <= 64; at += 8)
        trial.hostile(at, 8, rule);
    // With the optimiser's moments: cut to the weights alone it is whole again.
    write_random_checkpoint(folder / "b.ckpt", tiny(8), 5, true);
    Trial moments("  with moments", read_bytes(folder / "b.ckpt"), read_model, same_logits());
    const std::size_t weights = trial.good().size();
    moments.cut(61, [&](std::size_t size) { return size == weights; });
    std::vector<std::byte> bytes = moments.good();
    bytes.resize(weights);
    BOOST_TEST(!moments.whole(bytes));
    for (const std::size_t size : {weights - 1, weights + 1, bytes.size() + 4}) {
        bytes = moments.good();
        bytes.resize(size);
        BOOST_TEST(moments.whole(bytes));
    }
}

BOOST_AUTO_TEST_CASE(version_1_models) {
    const TempFolder folder;
    const ModelFile source = source_of(folder, tiny(8));
    for (const char* type : {"f32", "q8", "q4"}) {
        must(write_model(folder / "m", "mnm1", source, *find_codec(type)));
        Trial trial(std::string("mnm1 ") + type, read_bytes(folder / "m"), read_model,
                    same_logits());
        const Trial::Rule rule = [](std::size_t at, const std::vector<std::byte>& bytes) {
            if (at >= 88) return Must::be_accepted;
            if (at / 8 == 8) return context_rule(bytes, 64);
            if (at / 8 != 9) return Must::be_refused;
            const auto base = load<double>(bytes, 72);
            return base >= 1e-3 && base <= 1e12 ? Must::be_accepted : Must::be_refused;
        };
        trial.cut(type == std::string("q4") ? 1 : 7);
        trial.flip(0, 128, rule);
        for (std::size_t at = 8; at <= 80; at += 8)
            trial.hostile(at, 8, rule);
    }
}

BOOST_AUTO_TEST_CASE(version_2_models) {
    const TempFolder folder;
    const std::vector<std::byte> good = version_2(folder);
    const Surgery surgery(good);
    Trial trial("mnm2", good, read_model, same_logits());
    // Whatever a checksum covers is noticed; the gaps between are nobody's.
    std::vector<bool> covered(good.size(), false);
    const auto cover = [&](std::uint64_t begin, std::uint64_t size) {
        for (std::uint64_t i = begin; i < begin + size; ++i)
            covered[static_cast<std::size_t>(i)] = true;
    };
    cover(0, 64);
    cover(load<std::uint64_t>(good, 16), 48 * load<std::uint32_t>(good, 12) + 8);
    for (const char* name :
         {"config", "tokenizer", "chat_template", "sampling", "metadata", "tensors"})
        cover(surgery.offset(name), surgery.size(name));
    for (std::uint64_t i = 0; i < surgery.size("tensors"); i += 120)
        cover(load<std::uint64_t>(good, surgery.offset("tensors") + i + 96),
              load<std::uint64_t>(good, surgery.offset("tensors") + i + 104));
    trial.cut();
    const Trial::Rule rule = [&](std::size_t at, const std::vector<std::byte>&) {
        return covered[at] ? Must::be_refused : Must::be_accepted;
    };
    // The weights lie between the sections written before and after them: one bit of every 4th
    // byte.
    const auto weights = static_cast<std::size_t>(surgery.offset("weights"));
    const auto after = weights + static_cast<std::size_t>(surgery.size("weights"));
    trial.flip(0, 1024, rule);
    trial.flip(1024, weights, rule, 9);
    trial.flip(weights, after, rule, 33);
    trial.flip(after, good.size(), rule);
}

/// The same by someone who can compute checksums.
BOOST_AUTO_TEST_CASE(version_2_models_with_right_checksums) {
    const TempFolder folder;
    const std::vector<std::byte> good = version_2(folder);
    const Surgery surgery(good);
    Trial trial("mnm2, healed", good, read_model, finite_logits);
    const std::uint64_t table = load<std::uint64_t>(good, 16);
    const std::uint64_t table_size = 48 * load<std::uint32_t>(good, 12);
    const auto bits = [&](std::uint64_t begin, std::uint64_t size) {
        for (std::uint64_t at = begin; at < begin + size; ++at)
            for (unsigned bit = 0; bit < 8; ++bit)
                if (!thin() || (at * 8 + bit) % 17 == 0)
                    trial.flipped(Surgery(good).flip(at, 1u << bit).healed());
    };
    bits(0, 56);
    bits(table, table_size);
    for (const char* name :
         {"config", "tokenizer", "chat_template", "sampling", "metadata", "tensors"})
        bits(surgery.offset(name), surgery.size(name));
    const Trial::Count flips = trial.flips();
    BOOST_TEST(flips.refused > flips.tried / 2);

    const auto counts = [&](std::uint64_t at, auto max) {
        using Number = decltype(max);
        for (const Number value : {Number{0}, Number{1}, max, static_cast<Number>(max / 2 + 1),
                                   static_cast<Number>(max - 63)})
            trial.whole(Surgery(good).set(at, value).healed());
    };
    counts(12, ~std::uint32_t{0});
    for (const std::uint64_t at : {16, 24})
        counts(at, ~std::uint64_t{0});
    for (std::uint64_t at = table; at < table + table_size; at += 48) {
        counts(at + 16, ~std::uint32_t{0});
        counts(at + 24, ~std::uint64_t{0});
        counts(at + 32, ~std::uint64_t{0});
    }
    for (std::uint64_t i = 0; i < surgery.size("tensors"); i += 120)
        for (const std::uint64_t field : {80, 88, 96, 104})
            counts(surgery.offset("tensors") + i + field, ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(sections_that_would_unfold) {
    const TempFolder folder;
    const std::vector<std::byte> good = version_2(folder);
    Trial trial("mnm2 bombs", good, read_model);
    const std::size_t large = 1 << 20;
    const auto repeated = [](std::string_view part, std::size_t size) {
        std::string text;
        while (text.size() < size)
            text += part;
        return text;
    };
    const auto refused = [&](const char* section, const std::string& text) {
        return trial.whole(Surgery(good).append(section, text).healed());
    };
    BOOST_TEST(refused("metadata", repeated("[", large)));
    BOOST_TEST(refused("metadata", "[" + repeated("[],", large) + "[]]"));
    BOOST_TEST(refused("metadata", "[" + repeated("0,", large) + "0]"));
    BOOST_TEST(refused("metadata", "[" + repeated("[\"\",\"\"],", large) + "[\"\",\"\"]]"));
    BOOST_TEST(!refused("metadata", "[" + repeated("[\"\",\"\"],", 8 * 4095) + "[\"\",\"\"]]"));
    BOOST_TEST(!refused("metadata", "[[\"a\",\"" + std::string(large, 'x') + "\"]]"));
    BOOST_TEST(refused("config", repeated("[", 1 << 16)));
    BOOST_TEST(refused("sampling", repeated("{\"a\":", 1 << 16)));
    BOOST_TEST(refused("config", repeated(" ", (1 << 16) + 1)));
}

BOOST_AUTO_TEST_CASE(gguf_files) {
    const TempFolder folder;
    ModelFile source = source_of(folder, tiny(272));
    source.details.tokenizer = tiny_tokenizer(272);
    const auto plan = must(gguf_plan(source, *find_codec("q4_0"), {"tiny", "llama-bpe"}));
    must(write_model(folder / "m.gguf", "gguf", source, plan));
    const auto read = [](const std::string& path) -> std::optional<std::string> {
        auto mapping = MappedFile::open(path);
        if (!mapping) return mapping.error().message;
        const auto file = read_gguf(*mapping);
        if (!file) return file.error().message;
        const auto list = find_format("gguf")->list(*mapping);
        return list ? std::nullopt : std::optional(list.error().message);
    };
    // What was accepted lies inside the file: every byte can be read.
    const auto use = [](const std::string& path) {
        const auto file = must(read_gguf(must(MappedFile::open(path))));
        const auto bytes = file.mapping->bytes();
        for (const GgufTensor& tensor : file.tensors) {
            BOOST_REQUIRE(tensor.data >= bytes.data());
            const auto at = static_cast<std::uint64_t>(tensor.data - bytes.data());
            BOOST_REQUIRE(inside(at, tensor.bytes, bytes.size()));
        }
    };
    Trial trial("gguf", read_bytes(folder / "m.gguf"), read, use);
    const auto file = must(read_gguf(must(MappedFile::open(folder / "m.gguf"))));
    const auto start = file.tensors.front().data - file.mapping->bytes().data();
    const GgufTensor& last = file.tensors.back();
    const auto end = last.data + last.bytes - file.mapping->bytes().data();
    // The padding after the last tensor may be missing.
    trial.cut(1, [&](std::size_t size) { return size >= static_cast<std::size_t>(end); });
    const auto any = [](std::size_t at, const std::vector<std::byte>&) {
        return at < 8 ? Must::be_refused : Must::either;
    };
    // GGUF 2 reads like 3.
    trial.flip(0, static_cast<std::size_t>(start),
               [&](std::size_t at, const std::vector<std::byte>& bytes) {
                   return at == 4 && bytes[4] == std::byte{2} ? Must::be_accepted : any(at, bytes);
               });
    trial.flip(
        static_cast<std::size_t>(start), trial.good().size(),
        [](std::size_t, const std::vector<std::byte>&) { return Must::be_accepted; }, 33);
    for (const std::size_t at : {8u, 16u})
        trial.hostile(at, 8,
                      [](std::size_t, const std::vector<std::byte>&) { return Must::be_refused; });
    std::vector<std::byte> longer = trial.good();
    longer.insert(longer.end(), 32, std::byte{0});
    BOOST_TEST(trial.whole(longer));
}

BOOST_AUTO_TEST_SUITE_END()
