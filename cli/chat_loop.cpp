// SPDX-License-Identifier: MIT
// A chat from its first line to its last.
#include "cli/chat_loop.h"

#include "cli/report.h"
#include "cli/terminal.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <optional>

namespace mnm::cli {
namespace {

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

constexpr std::string_view help =
    "/help         this list\n"
    "/system TEXT  what the model is told first (without TEXT: nothing)\n"
    "/temp X       temperature; 0 always takes the likeliest token\n"
    "/stats        seed, sampling, context, speed\n"
    "/reset        forget the conversation, keep the system text\n"
    "/quit, /bye   leave (Ctrl+D too)\n"
    "A line that ends in \\ goes on in the next; // at the start sends one /.\n"
    "Ctrl+C stops a reply; what was said stays in the conversation.\n";

} // namespace

nlohmann::ordered_json reply_json(const Reply& reply, std::uint64_t seed) {
    constexpr const char* ends[] = {"finished", "token_limit", "context_full", "interrupted",
                                    "repetition"};
    return {{"reply", reply.text},
            {"ids", reply.ids},
            {"tokens", reply.ids.size()},
            {"prompt_tokens", reply.prompt_tokens},
            {"prompt_seconds", reply.prompt_seconds},
            {"seconds", reply.seconds},
            {"tokens_per_second", reply.tokens_per_second()},
            {"end", ends[static_cast<std::size_t>(reply.end)]},
            {"seed", seed}};
}

std::string reply_remark(const Reply& reply) {
    const std::string_view reason = describe(reply.end);
    return fmt::format("[{} tokens, {:.1f} tokens/s{}{}]", reply.ids.size(),
                       reply.tokens_per_second(), reason.empty() ? "" : "; ", reason);
}

void ChatLoop::say(std::string_view text) const {
    flush_output();
    std::fputs(dim(without_controls(text)).c_str(), stderr);
    std::fflush(stderr);
}

void ChatLoop::show_help() const {
    say(help);
}

void ChatLoop::show_stats() const {
    const SamplerOptions& sampling = assistant_->sampling();
    const Session& session = assistant_->session();
    say(fmt::format("seed {}, temperature {}, top-p {}, top-k {}, at most {} tokens a reply\n",
                    seed_, sampling.temperature, sampling.top_p, sampling.top_k,
                    assistant_->max_tokens()));
    say(fmt::format("{} turns, {} of {} tokens of the context, {} tokens said, cache {} bytes\n",
                    assistant_->conversation().turns().size(), session.position(),
                    assistant_->context(), spoken_tokens_, grouped(session.cache_bytes())));
}

void ChatLoop::set_system(std::string_view text) {
    if (const auto set = assistant_->set_system(text); !set) {
        print_error(set.error().message);
        ++refused_;
        return;
    }
    say(text.empty() ? "no system text\n" : "system text set\n");
}

void ChatLoop::set_temperature(std::string_view text) {
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    const bool whole = !copy.empty() && *end == '\0';
    if (!whole || !std::isfinite(value) || value < 0 || value > 100) {
        say("/temp takes a number from 0 to 100\n");
        return;
    }
    assistant_->sampling().temperature = value;
    say(fmt::format("temperature {}\n", value));
}

void ChatLoop::run_command(std::string_view line) {
    const std::size_t space = line.find_first_of(" \t\n");
    const std::string_view name = line.substr(0, space);
    const std::string_view rest =
        space == std::string_view::npos ? std::string_view{} : trimmed(line.substr(space + 1));
    if (name == "/quit" || name == "/bye") {
        finished_ = true;
    } else if (name == "/reset") {
        assistant_->reset();
        say("conversation forgotten\n");
    } else if (name == "/help") {
        show_help();
    } else if (name == "/stats") {
        show_stats();
    } else if (name == "/system") {
        set_system(rest);
    } else if (name == "/temp") {
        set_temperature(rest);
    } else {
        say(fmt::format("there is no command {}; /help lists them\n", name));
    }
}

Result<void> ChatLoop::take_turn(const std::string& text, const InterruptFlag* interrupt) {
    const auto show = [&](std::string_view piece) {
        if (json_) return;
        print(piece);
        flush_output();
    };
    MNM_TRY(const Reply reply, assistant_->answer(text, show, interrupt));
    if (json_)
        print_json_line(reply_json(reply, seed_));
    else
        print("\n");
    flush_output();
    spoken_tokens_ += reply.ids.size();
    if (quiet_) return {};
    if (reply.dropped_turns != 0) {
        say(fmt::format("the context of {} tokens is full: the {} oldest turns were forgotten\n",
                        assistant_->context(), reply.dropped_turns));
    }
    say(reply_remark(reply) + "\n");
    return {};
}

LineEditor::Event ChatLoop::read_turn(std::string& text) {
    text.clear();
    std::string line;
    auto event = editor_.read(">>> ", line);
    while (event == LineEditor::Event::line && line.ends_with('\\')) {
        line.back() = '\n';
        text += line;
        event = editor_.read("... ", line);
    }
    if (event == LineEditor::Event::failure) text.clear();
    text += line;
    // Input that ends after a backslash: what was typed before it counts.
    if (event == LineEditor::Event::end && !text.empty()) return LineEditor::Event::line;
    return event;
}

bool ChatLoop::leaves_on_interrupt(bool typed_something) {
    const auto now = std::chrono::steady_clock::now();
    const bool twice =
        !typed_something && last_interrupt_ && now - *last_interrupt_ < std::chrono::seconds(2);
    last_interrupt_ = now;
    if (!twice) say("Ctrl+C again, Ctrl+D or /quit leaves\n");
    return twice;
}

Result<void> ChatLoop::run() {
    // A person's Ctrl+C stops the reply; that of a script ends the program.
    std::optional<InterruptFlag> interrupt;
    if (editor_.interactive()) interrupt.emplace();
    std::string text;
    while (!finished_) {
        const auto event = read_turn(text);
        if (interrupt) interrupt->clear();
        if (event == LineEditor::Event::end) break;
        if (event == LineEditor::Event::failure)
            return Error{fmt::format("standard input: {}", text)};
        if (event == LineEditor::Event::interrupt) {
            if (leaves_on_interrupt(!text.empty())) break;
            continue;
        }
        last_interrupt_.reset();
        if (trimmed(text).empty()) continue;
        if (text.starts_with('/') && !text.starts_with("//")) {
            run_command(text);
            continue;
        }
        if (text.starts_with("//")) text.erase(0, 1);
        if (const auto taken = take_turn(text, interrupt ? &*interrupt : nullptr); !taken) {
            print_error(taken.error().message);
            if (json_) print_json_line({{"error", taken.error().message}});
            ++refused_;
        }
    }
    if (refused_ != 0 && !editor_.interactive())
        return Error{fmt::format("{} of the lines got no reply or were refused", refused_)};
    return {};
}

} // namespace mnm::cli
