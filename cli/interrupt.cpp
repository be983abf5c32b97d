// SPDX-License-Identifier: MIT
// Ctrl+C and the end that the system asks for.
#include "cli/interrupt.h"

#include "cli/terminal.h"
#include "formats/atomic_file.h"
#include "formats/mapped_file.h"

#include <csignal>
#include <cstdlib>
#include <string_view>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace mnm::cli {
namespace {

volatile std::sig_atomic_t flag_wanted = 0;
volatile std::sig_atomic_t flag_raised = 0;

void on_signal(int signal) {
    if (signal == SIGINT && flag_wanted != 0) {
        flag_raised = 1;
#ifdef _WIN32
        std::signal(SIGINT, on_signal);
#endif
        return;
    }
    remove_unfinished_files();
    restore_terminal();
    std::_Exit(128 + signal);
}

void install(int signal) {
#ifdef _WIN32
    std::signal(signal, on_signal);
#else
    // Without SA_RESTART: a read that waits for a person must return.
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
#endif
}

#ifndef _WIN32
/// One write, as print_error() would do it; no control character of a file name gets through.
void write_error(const char* path, std::string_view what) {
    char line[2048];
    std::size_t size = 0;
    const auto put = [&](char c) {
        if (size < sizeof line - 1) line[size++] = c;
    };
    for (const char c : std::string_view("mnm: error: "))
        put(c);
    for (bool escape = false; *path != '\0' && size < sizeof line / 2; ++path) {
        const auto byte = static_cast<unsigned char>(*path);
        const bool control = byte < 0x20 || byte == 0x7F || (escape && byte < 0xA0);
        put(control ? '?' : *path);
        escape = byte == 0xC2;
    }
    for (const char c : what)
        put(c);
    put('\n');
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line, size);
}

/// A mapped file that lost the bytes that are read now. Any other cause is a fault of this program.
void on_bus_error(int signal, siginfo_t* info, void*) {
    const char* path = mapped_path_at(info->si_addr);
    if (path == nullptr) {
        std::signal(signal, SIG_DFL); // the instruction is tried again, and ends the program
        return;
    }
    remove_unfinished_files();
    restore_terminal();
    write_error(path, ": was cut short, or its disk failed, while it was in use; restore the file "
                      "and run the command again (replace files by renaming, not in place)");
    std::_Exit(1);
}
#endif

/// A parent that ignores a signal for its children (nohup, a job in the background) means it.
void install_unless_ignored(int signal) {
#ifndef _WIN32
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
#endif
    install(signal);
}

} // namespace

void handle_signals() {
    install_unless_ignored(SIGINT);
    install_unless_ignored(SIGTERM);
#ifndef _WIN32
    install_unless_ignored(SIGHUP);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN); // a file too large is a write error that we report
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
#endif
}

InterruptFlag::InterruptFlag() {
    flag_raised = 0;
    flag_wanted = 1;
    install(SIGINT); // a person types it, whatever the parent thought of signals
}
InterruptFlag::~InterruptFlag() {
    flag_wanted = 0;
}
bool InterruptFlag::raised() const {
    return flag_raised != 0;
}
void InterruptFlag::clear() {
    flag_raised = 0;
}

} // namespace mnm::cli
