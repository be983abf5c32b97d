// SPDX-License-Identifier: MIT
// mnm: parses the command line and runs the subcommand that it names.
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <exception>
#include <vector>

namespace {

using namespace mnm;
using namespace mnm::cli;

std::string version_text() {
#if defined(__clang__)
    const std::string compiler = fmt::format("clang {}", __clang_version__);
#elif defined(__GNUC__)
    const std::string compiler = fmt::format("g++ {}", __VERSION__);
#elif defined(_MSC_VER)
    const std::string compiler = fmt::format("MSVC {}", _MSC_FULL_VER);
#else
    const std::string compiler = "an unnamed compiler";
#endif
    return fmt::format("mnm {} ({})\ncompiler: {}\nkernels built: {}\nkernels usable here: {}\n"
                       "line editing: {}",
                       version, revision, compiler, joined(kernels::built_levels()),
                       joined(kernels::usable_levels()), LineEditor::library());
}

/// "mnm quantise" means something; the parser alone would say only that a subcommand is required.
std::string problem_before_a_command(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<std::string> rest = app.remaining();
    if (!rest.empty() && rest.front().starts_with('-')) return error.what();
    std::vector<std::string> names;
    for (const CLI::App* parser : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(parser->get_name());
    if (rest.empty()) return fmt::format("no command is given; there is {}", joined(names));
    const std::string unknown = fmt::format("'{}' is not a command", rest.front());
    const std::string name = nearest(names, rest.front(), 2);
    return name.empty() ? fmt::format("{}; there is {}", unknown, joined(names))
                        : fmt::format("{}; did you mean {}?", unknown, name);
}

/// Help and version ask for an early end, anything else is a usage error.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App* named = &app;
    for (const CLI::App* parser : app.get_subcommands())
        named = parser;
    if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
        print(named == &app ? named->help() : named->help("mnm"));
        return 0;
    }
    if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
        print(version_text() + "\n");
        return 0;
    }
    const std::string command = named == &app ? "mnm" : "mnm " + named->get_name();
    const std::string problem =
        named == &app ? problem_before_a_command(app, error) : std::string(error.what());
    print_error(fmt::format("{} (see {} --help)", problem, command));
    return 2;
}

int run(const std::vector<std::string>& arguments) {
    CLI::App app("Mnemonic: small language models, quantised, measured and chatting on any CPU",
                 "mnm");
    app.set_version_flag("--version", "");
    app.require_subcommand(1);
    app.allow_windows_style_options(false); // /data/model is a path there too
    app.footer("Example:\n  mnm quantize models/tales-chat.ckpt tales.mnm && mnm chat tales.mnm\n"
               "mnm COMMAND --help explains a command.");
    const std::vector<Command> commands = {add_quantize(app), add_chat(app),   add_eval(app),
                                           add_gguf(app),     add_bench(app),  add_info(app),
                                           add_tokenize(app), add_logits(app), add_completion(app)};
    try {
        std::vector<const char*> words;
        for (const std::string& argument : arguments)
            words.push_back(argument.c_str());
        app.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
        return end_of_parsing(app, error);
    }
    for (const Command& command : commands) {
        if (!command.parser->parsed()) continue;
        if (const Result<void> done = command.run(); !done) {
            print_error(done.error().message);
            return 1;
        }
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    prepare_streams();
    handle_signals();
    int status = 1;
    try {
        status = run(arguments(argc, argv));
    } catch (const std::bad_alloc&) {
        print_error("out of memory");
    } catch (const std::exception& error) {
        print_error(error.what());
    }
    flush_output();
    return status;
}
