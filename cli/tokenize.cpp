// SPDX-License-Identifier: MIT
// mnm tokenize: a text as token ids.
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/tokenizer_source.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace mnm::cli {
namespace {

struct TokenizeOptions {
    std::string input;
    std::string tokenizer;
    bool ids = false;
    OutputOptions report;
};

Result<std::string> read_standard_input() {
    std::string text;
    char buffer[65536];
    while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, stdin))
        text.append(buffer, count);
    if (std::ferror(stdin)) return Error{fmt::format("standard input: {}", std::strerror(errno))};
    return text;
}

Result<std::vector<TokenId>> encode_input(const TokenizeOptions& options,
                                          const Tokenizer& tokenizer) {
    if (options.input == "-") {
        MNM_TRY(const std::string text, read_standard_input());
        return tokenizer.encode(text);
    }
    MNM_TRY(auto mapping, MappedFile::open(options.input));
    const auto bytes = mapping->bytes();
    return tokenizer.encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<void> tokenize(const TokenizeOptions& options) {
    MNM_TRY(FoundTokenizer found, read_tokenizer(options.tokenizer));
    const Tokenizer tokenizer(std::move(found.file));
    MNM_TRY(const std::vector<TokenId> ids, encode_input(options, tokenizer));

    if (options.report.json) {
        std::vector<std::string> texts;
        std::size_t bytes = 0;
        for (const TokenId id : ids) {
            texts.emplace_back(tokenizer.bytes(id));
            bytes += texts.back().size();
        }
        print_json({{"count", ids.size()}, {"bytes", bytes}, {"ids", ids}, {"tokens", texts}});
    } else if (options.ids) {
        print(fmt::format("{}\n", fmt::join(ids, ",")));
    } else {
        for (const TokenId id : ids)
            print(fmt::format("{:>6}  {}\n", id, json_string(tokenizer.bytes(id))));
    }
    return {};
}

} // namespace

Command add_tokenize(CLI::App& app) {
    auto options = std::make_shared<TokenizeOptions>();
    CLI::App* parser = app.add_subcommand("tokenize", "Show a text as tokens");
    parser->add_option("FILE", options->input, "Text, as it is; - for standard input")
        ->required()
        ->check(file_name());
    parser
        ->add_option("--tokenizer", options->tokenizer,
                     "tokenizer.bin, a model that holds one, or a checkpoint beside one")
        ->required()
        ->check(file_name())
        ->type_name("FILE|MODEL");
    parser->add_flag("--ids", options->ids, "Only the ids, on one line, separated by commas");
    add_json(*parser, options->report);
    add_quiet(*parser, options->report);
    parser->footer("Example:\n  echo 'Once upon a time' | mnm tokenize - --tokenizer "
                   "models/tokenizer.bin --ids");
    return {parser, [options] { return tokenize(*options); }};
}

} // namespace mnm::cli
