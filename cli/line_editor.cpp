// SPDX-License-Identifier: MIT
// Lines from a person or a pipe.
#include "cli/line_editor.h"

#include "cli/report.h"
#include "cli/terminal.h"

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#ifdef MNM_LIBEDIT
#include <histedit.h>
#endif

namespace mnm::cli {

#ifdef MNM_LIBEDIT

struct LineEditor::Editor {
    EditLine* line = nullptr;
    History* history = nullptr;
    std::string prompt;
    bool interrupted = false;
    std::string abandoned;

    Editor();
    ~Editor();
    Event read(const std::string& shown_prompt, std::string& text);

    static Editor* self(EditLine* line);
    static char* show_prompt(EditLine* line);
    static unsigned char on_interrupt(EditLine* line, int);
    static unsigned char on_suspend(EditLine* line, int);
    static unsigned char on_paste(EditLine* line, int);
};

LineEditor::Editor::Editor() {
    line = el_init("mnm", stdin, stdout, stderr);
    history = history_init();
    HistEvent event;
    ::history(history, &event, H_SETSIZE, 1000);
    el_set(line, EL_CLIENTDATA, this);
    el_set(line, EL_HIST, ::history, history);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_PROMPT, show_prompt);
    el_source(line, nullptr);
    el_set(line, EL_ADDFN, "mnm-interrupt", "Leave the line", on_interrupt);
    el_set(line, EL_ADDFN, "mnm-paste", "Take a pasted text whole", on_paste);
    el_set(line, EL_ADDFN, "mnm-suspend", "Stop until continued", on_suspend);
    // Ctrl+C comes as a key while a line is edited, and as a signal while the model speaks.
    el_set(line, EL_SETTY, "-d", "-isig", nullptr);
    el_set(line, EL_BIND, "^C", "mnm-interrupt", nullptr);
    el_set(line, EL_BIND, "^Z", "mnm-suspend", nullptr);
    el_set(line, EL_BIND, "\\e[200~", "mnm-paste", nullptr);
}

LineEditor::Editor::~Editor() {
    history_end(history);
    el_end(line);
}

LineEditor::Event LineEditor::Editor::read(const std::string& shown_prompt, std::string& text) {
    prompt = shown_prompt;
    interrupted = false;
    el_resize(line);
    mark_pastes(true);
    el_set(line, EL_PREP_TERM, 1); // before the prompt shows, not just after
    int count = 0;
    errno = 0;
    const char* typed = el_gets(line, &count);
    const int reason = errno;
    mark_pastes(false);
    if (interrupted) {
        text = abandoned;
        return Event::interrupt;
    }
    if (typed == nullptr || count <= 0) {
        text.clear();
        if (count < 0 && reason == EINTR) return Event::interrupt;
        std::fputs("\n", stdout);
        return Event::end;
    }
    text.assign(typed, static_cast<std::size_t>(count));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
        text.pop_back();
    HistEvent event;
    if (!text.empty()) ::history(history, &event, H_ENTER, text.c_str());
    return Event::line;
}

LineEditor::Editor* LineEditor::Editor::self(EditLine* line) {
    Editor* editor = nullptr;
    el_get(line, EL_CLIENTDATA, &editor);
    return editor;
}

char* LineEditor::Editor::show_prompt(EditLine* line) {
    return self(line)->prompt.data();
}

/// Ends the line through a newline key, so that libedit leaves the screen in order.
unsigned char LineEditor::Editor::on_interrupt(EditLine* line, int) {
    const LineInfo* info = el_line(line);
    self(line)->interrupted = true;
    self(line)->abandoned.assign(info->buffer, info->lastchar);
    el_push(line, "\n");
    return CC_NORM;
}

/// What the terminal itself does at Ctrl+Z when it is not read key by key.
unsigned char LineEditor::Editor::on_suspend(EditLine* line, int) {
    mark_pastes(false);
    el_set(line, EL_PREP_TERM, 0);
    std::raise(SIGTSTP);
    el_set(line, EL_PREP_TERM, 1);
    mark_pastes(true);
    return CC_REDISPLAY;
}

/// Everything up to ESC [ 201 ~ goes into the line, line breaks too.
unsigned char LineEditor::Editor::on_paste(EditLine* line, int) {
    static constexpr std::wstring_view end_mark = L"\x1b[201~";
    std::wstring text;
    for (wchar_t c = 0; el_wgetc(line, &c) == 1;) {
        text += c == L'\r' ? L'\n' : c;
        if (text.ends_with(end_mark)) break;
    }
    if (text.ends_with(end_mark)) text.resize(text.size() - end_mark.size());
    std::wstring shown;
    for (const wchar_t c : text)
        if (c >= L' ' || c == L'\n' || c == L'\t') shown += c;
    while (!shown.empty() && shown.back() == L'\n')
        shown.pop_back();
    if (!shown.empty()) el_winsertstr(line, shown.c_str());
    return CC_REFRESH;
}

#else

struct LineEditor::Editor {
    Event read(const std::string&, std::string&) { return Event::end; }
};

#endif

const char* LineEditor::library() {
#ifdef MNM_LIBEDIT
    return "libedit";
#else
    return "none";
#endif
}

LineEditor::LineEditor() : interactive_(is_terminal(Stream::input) && is_terminal(Stream::output)) {
    if (!interactive_) return;
    remember_terminal();
#ifdef MNM_LIBEDIT
    // Text is UTF-8 whatever the locale; the C locale would garble it.
    std::setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    editor_ = std::make_unique<Editor>();
#endif
}

LineEditor::~LineEditor() = default;

LineEditor::Event LineEditor::read(const std::string& prompt, std::string& line) {
    flush_output();
    return editor_ ? editor_->read(prompt, line) : read_plain(prompt, line);
}

LineEditor::Event LineEditor::read_plain(const std::string& prompt, std::string& line) {
    if (interactive_) {
        print(prompt);
        flush_output();
    }
    line.clear();
    int c = 0;
    while ((c = read_byte()) >= 0 && c != '\n')
        line += static_cast<char>(c);
    if (c == input_interrupted) return Event::interrupt;
    // A terminal that went away is the end of a chat; an input that is no text at all is not.
    if (c == input_failed && !interactive_) {
        line = std::strerror(errno);
        return Event::failure;
    }
    if (line.empty() && c != '\n') return Event::end;
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (first_ && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    first_ = false;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return Event::line;
}

} // namespace mnm::cli
