// SPDX-License-Identifier: MIT
// Ctrl+C and the end that the system asks for.
#include "cli/interrupt.h"

#include "cli/terminal.h"
#include "formats/atomic_file.h"

#include <csignal>
#include <cstdlib>

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
