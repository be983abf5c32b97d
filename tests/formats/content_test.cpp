// SPDX-License-Identifier: MIT
// Files that are no models: the message says what they look like.
#include "tests/formats/damage.h"

#include <boost/test/unit_test.hpp>

using namespace mnm;
using namespace mnm::tests;
using namespace std::string_view_literals;

BOOST_AUTO_TEST_SUITE(content_test)

namespace {

std::string outcome_of(std::string_view content) {
    const TempFolder folder;
    // The name says nothing.
    const std::string path = folder / "model.gguf";
    write_bytes(path, std::as_bytes(std::span<const char>(content.data(), content.size())));
    const auto refused = outcome_of_model(path);
    BOOST_REQUIRE(refused);
    check_message(*refused, path);
    return *refused;
}

struct Case {
    std::string_view content;
    std::string_view what;
};

} // namespace

BOOST_AUTO_TEST_CASE(each_kind_is_named) {
    const Case cases[] = {
        {""sv, "the file is empty"},
        {"G"sv, "plain text"},
        {"GGUF"sv, "a GGUF file cut short"},
        {"GGUF\3\0\0\0"sv, "a GGUF file cut short"},
        {"<!DOCTYPE html><html>"sv, "HTML"},
        {"\xef\xbb\xbf \n<HTML lang=en>"sv, "HTML"},
        {"PK\3\4\x14\0"sv, "zip"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"sv, "git-lfs"},
        {"\x28\xb5\x2f\xfd\0\0\0\0"sv, "zstd"},
        {"\x1f\x8b\x08\0"sv, "gzip"},
        {"\x10\0\0\0\0\0\0\0{\"a\":{\"dtype\":1}}"sv, "safetensors"},
        {"\x80\x02}q\0"sv, "pickle"},
        {"MNTOKZR1"sv, "it is a tokenizer"},
        {"MNTOKEN1"sv, "stream of tokens"},
        {"MNMODEL3"sv, "version that is not supported"},
        {"MNCKPT02"sv, "version that is not supported"},
        {"{\"a\":1}"sv, "JSON"},
        {"Once upon a time\n"sv, "plain text"},
        {"\0\0\0\0\0\0\0\0\0\0\0\0"sv, "zeros"},
        {"\1\2\3\4\5\6\7\x08\x09"sv, "begins with the bytes 01 02 03 04 05 06 07 08"},
    };
    for (const auto& [content, what] : cases) {
        const std::string message = outcome_of(content);
        BOOST_TEST(message.find(what) != std::string::npos, message);
    }
}

BOOST_AUTO_TEST_CASE(every_format_is_found_by_name) {
    for (const Format& format : model_formats()) {
        BOOST_TEST(find_format(format.name) == &format);
        BOOST_TEST((format.write == nullptr) == (format.list == nullptr));
        BOOST_TEST(!format.probe({}));
    }
    BOOST_TEST(find_format("pt") == nullptr);
    BOOST_TEST(!open_model("no/such/file"));
}

BOOST_AUTO_TEST_SUITE_END()
