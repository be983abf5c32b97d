// SPDX-License-Identifier: MIT
// mnm completion: scripts that let a shell complete mnm's words, made from the parsers themselves.
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mnm::cli {
namespace {

/// An option as a shell sees it.
struct Word {
    std::vector<std::string> names; ///< with their dashes
    std::string help;               ///< one line
    bool takes_value = false;
    std::vector<std::string> choices; ///< of the value; empty: a file or anything
};

/// The {a, b} that one_of() writes into the type of a value.
std::vector<std::string> choices_in(const std::string& type) {
    std::vector<std::string> choices;
    const std::size_t open = type.find('{');
    const std::size_t close = type.find('}');
    if (open == std::string::npos || close == std::string::npos) return choices;
    for (std::size_t at = open + 1; at < close;) {
        const std::size_t end = std::min(type.find(", ", at), close);
        choices.push_back(type.substr(at, end - at));
        at = end + 2;
    }
    return choices;
}

/// Brackets, colons and quotes have a meaning in every shell's descriptions.
std::string plain(std::string text) {
    std::string kept;
    for (const char c : text)
        if (std::string_view("[]:'\"`$\\").find(c) == std::string_view::npos) kept += c;
    return kept;
}

std::vector<Word> words_of(const CLI::App& parser) {
    std::vector<Word> words;
    for (const CLI::Option* option : parser.get_options()) {
        if (option->get_positional()) continue;
        Word word;
        for (const std::string& name : option->get_snames())
            word.names.push_back("-" + name);
        for (const std::string& name : option->get_lnames())
            word.names.push_back("--" + name);
        word.help = plain(option->get_description());
        word.takes_value = option->get_items_expected_max() > 0;
        word.choices = choices_in(option->get_type_name());
        if (option->check_lname("kernel")) word.choices = kernels::usable_levels();
        words.push_back(std::move(word));
    }
    return words;
}

/// Of the words that follow the command itself; empty: files.
std::vector<std::string> positional_choices(const CLI::App& parser) {
    for (const CLI::Option* option : parser.get_options())
        if (option->get_positional()) return choices_in(option->get_type_name());
    return {};
}

std::string all_names(const std::vector<Word>& words) {
    std::vector<std::string> names;
    for (const Word& word : words)
        names.insert(names.end(), word.names.begin(), word.names.end());
    return fmt::format("{}", fmt::join(names, " "));
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app))
        names.push_back(command->get_name());
    return fmt::format("{}", fmt::join(names, " "));
}

std::string bash(const CLI::App& app) {
    std::string cases;
    for (const CLI::App* command : commands_of(app)) {
        const auto words = words_of(*command);
        cases += fmt::format("    {})\n        options='{}'\n        case \"$previous\" in\n",
                             command->get_name(), all_names(words));
        for (const Word& word : words) {
            if (!word.takes_value) continue;
            cases += fmt::format("            {}) values='{}'; takes_value=yes ;;\n",
                                 fmt::join(word.names, " | "), fmt::join(word.choices, " "));
        }
        cases += fmt::format("            {}) values='{}' ;;\n        esac ;;\n",
                             command->get_name(), fmt::join(positional_choices(*command), " "));
    }
    return fmt::format(R"script(# bash completion for mnm: eval "$(mnm completion bash)"
_mnm() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local options='' values='' takes_value=''
    if [ "$current" = = ]; then # --option=value comes as three words
        current=''
    elif [ "$previous" = = ]; then
        previous=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{} {}' -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{}    esac
    if [ -n "$values" ]; then
        COMPREPLY=($(compgen -W "$values" -- "$current"))
    elif [ -z "$takes_value" ] && [ "${{current#-}}" != "$current" ]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    fi
}}
complete -o default -F _mnm mnm
)script",
                       command_names(app), all_names(words_of(app)), cases);
}

std::string zsh(const CLI::App& app) {
    std::string described;
    std::string cases;
    for (const CLI::App* command : commands_of(app)) {
        described += fmt::format("        '{}:{}'\n", command->get_name(),
                                 plain(command->get_description()));
        cases += fmt::format("        {})\n            _arguments -s", command->get_name());
        for (const Word& word : words_of(*command)) {
            const std::string value =
                !word.takes_value      ? ""
                : word.choices.empty() ? ":value:_files"
                                       : fmt::format(":value:({})", fmt::join(word.choices, " "));
            for (const std::string& name : word.names)
                cases += fmt::format(" \\\n                '{}[{}]{}'", name, word.help, value);
        }
        const auto choices = positional_choices(*command);
        cases += choices.empty() ? " \\\n                '*:file:_files' ;;\n"
                                 : fmt::format(" \\\n                ':value:({})' ;;\n",
                                               fmt::join(choices, " "));
    }
    return fmt::format(R"script(#compdef mnm
# zsh completion for mnm: eval "$(mnm completion zsh)"
_mnm() {{
    local -a commands=(
{}    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{}    esac
}}
compdef _mnm mnm
)script",
                       described, cases);
}

std::string fish(const CLI::App& app) {
    std::string script = "# fish completion for mnm: mnm completion fish | source\n";
    for (const CLI::App* command : commands_of(app)) {
        script += fmt::format("complete -c mnm -n __fish_use_subcommand -f -a {} -d '{}'\n",
                              command->get_name(), plain(command->get_description()));
        if (const auto choices = positional_choices(*command); !choices.empty())
            script +=
                fmt::format("complete -c mnm -n '__fish_seen_subcommand_from {}' -f -a '{}'\n",
                            command->get_name(), fmt::join(choices, " "));
        for (const Word& word : words_of(*command)) {
            script += fmt::format("complete -c mnm -n '__fish_seen_subcommand_from {}'",
                                  command->get_name());
            for (const std::string& name : word.names) {
                const bool is_long = name.starts_with("--");
                script += fmt::format(" -{} {}", is_long ? 'l' : 's', name.substr(is_long ? 2 : 1));
            }
            if (word.takes_value) script += " -r";
            if (!word.choices.empty())
                script += fmt::format(" -f -a '{}'", fmt::join(word.choices, " "));
            script += fmt::format(" -d '{}'\n", word.help);
        }
    }
    return script;
}

} // namespace

Command add_completion(CLI::App& app) {
    auto shell = std::make_shared<std::string>();
    CLI::App* parser =
        app.add_subcommand("completion", "Print a script that completes mnm's words");
    parser->add_option("SHELL", *shell, "The shell it is for")
        ->required()
        ->check(one_of({"bash", "zsh", "fish"}));
    parser->footer("Example:\n  eval \"$(mnm completion bash)\"");
    return {parser, [shell, &app]() -> Result<void> {
                print(*shell == "bash" ? bash(app) : *shell == "zsh" ? zsh(app) : fish(app));
                return {};
            }};
}

} // namespace mnm::cli
