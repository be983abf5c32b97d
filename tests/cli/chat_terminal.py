# SPDX-License-Identifier: MIT
"""mnm chat on a terminal: editing, pasted text, Ctrl+C, and leaving the terminal as it was."""
import contextlib
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time

import command_line
from command_line import CHECKPOINT, MNM

try:
    import fcntl
    import pty
    import termios
except ImportError:
    print("skipped: no pseudo-terminals here")
    sys.exit(77)

if b"line editing: libedit" not in command_line.mnm("--version").stdout:
    print("skipped: this build edits no lines")
    sys.exit(77)

PROMPT = ">>> "


class Terminal:
    """mnm chat on a pseudo-terminal."""

    def __init__(self, *arguments, columns=100):
        self.main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("4H", 30, columns, 0, 0))
        self.child = child
        self.before = termios.tcgetattr(child)
        environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen([*MNM, "chat", CHECKPOINT, "--seed", "5", *arguments],
                                        stdin=child, stdout=child, stderr=child, env=environment,
                                        start_new_session=True, preexec_fn=self.take_terminal)
        self.seen = ""

    def take_terminal(self):
        fcntl.ioctl(self.child, termios.TIOCSCTTY, 0)

    def type(self, text):
        os.write(self.main, text.encode() if isinstance(text, str) else text)

    def until(self, pattern, seconds=30):
        """What is shown up to a match; raises when it does not come."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen)
            if match:
                shown, self.seen = self.seen[:match.end()], self.seen[match.end():]
                return shown
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.main], [], [], left)[0]
            try:
                data = os.read(self.main, 65536) if ready else b""
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += data.decode(errors="replace")

    def end(self):
        """The exit status, once all is read."""
        status = self.process.wait(30)
        self.after = termios.tcgetattr(self.child)
        os.close(self.child)
        os.close(self.main)
        return status


class ChatTerminal(command_line.Case):
    def leave(self, terminal, status=0):
        self.assertEqual(terminal.end(), status)
        self.assertEqual(terminal.after, terminal.before)

    def test_turns_and_history(self):
        terminal = Terminal("--max-tokens", "5")
        terminal.until(PROMPT)
        terminal.type("hello\n")
        first = terminal.until(r"\[5 tokens")
        terminal.until(PROMPT)
        terminal.type("/reset\n")
        terminal.until(PROMPT)
        terminal.type("\x1b[A\x1b[A\n")  # twice up: hello again
        self.assertIn("hello", terminal.until(r"\[5 tokens"))
        terminal.until(PROMPT)
        terminal.type("helxlo\x1b[D\x1b[D\x7f\n")  # the x is taken out again
        terminal.until(r"\[5 tokens")
        terminal.until(PROMPT)
        terminal.type("\x04")
        self.leave(terminal)
        self.assertIn("hello", first)

    def test_interrupt_at_the_prompt(self):
        terminal = Terminal()
        terminal.until(PROMPT)
        terminal.type("half a line\x03")
        terminal.until("Ctrl\\+C again")
        terminal.until(PROMPT)
        terminal.type("\x03")
        self.leave(terminal)

    def test_interrupts_with_something_between_do_not_leave(self):
        terminal = Terminal("--max-tokens", "5")
        for typed in ("\x03", "more\x03"):
            terminal.until(PROMPT)
            terminal.type(typed)
            terminal.until("Ctrl\\+C again")
        terminal.until(PROMPT)
        terminal.type("hello\n")
        terminal.until(r"\[5 tokens")
        terminal.until(PROMPT)
        terminal.type("\x03")
        terminal.until("Ctrl\\+C again")
        terminal.until(PROMPT)
        terminal.type("\x03")
        self.leave(terminal)

    def test_the_end_of_the_input_at_every_prompt(self):
        terminal = Terminal("--max-tokens", "5")
        terminal.until(PROMPT)
        terminal.type("one\\\n")
        terminal.until(r"\.\.\. ")
        terminal.type("\x04")  # what was typed counts, and gets its reply
        terminal.until(r"\[5 tokens")
        terminal.until(PROMPT)
        terminal.type("\x04")
        self.leave(terminal)

    def test_a_terminal_that_goes_away(self):
        terminal = Terminal()
        terminal.until(PROMPT)
        os.close(terminal.child)
        os.close(terminal.main)
        self.assertEqual(terminal.process.wait(30), 129)

    def test_interrupt_stops_the_reply(self):
        # The reply is short; on a busy machine it may be over before Ctrl+C comes.
        for attempt in range(10):
            terminal = Terminal("--max-tokens", "200", "--temp", "2", "--top-k", "0", "--top-p",
                                "1", "--kernel", "ref", "--threads", "1")
            terminal.until(PROMPT)
            terminal.type("hello\n")
            terminal.until("hello\r\n")
            terminal.until(".{5}")
            terminal.type("\x03")
            shown = terminal.until(r"\[\d+ tokens[^\]]*\]")
            terminal.until(PROMPT)
            terminal.type("/stats\n")
            self.assertIn("2 turns", terminal.until("cache"))
            terminal.type("/quit\n")
            self.leave(terminal)
            if "interrupted" in shown:
                self.assertLess(int(re.search(r"\[(\d+) tokens", shown).group(1)), 200)
                return
        self.fail("no reply was interrupted")

    def test_pasted_lines_are_one_turn(self):
        terminal = Terminal("--max-tokens", "5")
        self.assertIn("\x1b[?2004h", terminal.until(PROMPT))
        terminal.type("\x1b[200~one\rtwo\rthree\x1b[201~")
        time.sleep(0.2)
        terminal.type("\n")
        terminal.until(r"\[5 tokens")
        terminal.until(PROMPT)
        terminal.type("/stats\n")
        self.assertIn("2 turns", terminal.until("cache"))
        terminal.type("/quit\n")
        self.leave(terminal)

    def test_letters_and_a_narrow_window(self):
        terminal = Terminal("--max-tokens", "5", columns=20)
        terminal.until(PROMPT)
        terminal.type("\u00e9\u6f22\U0001F600 " * 10 + "\n")
        terminal.until(r"\[5 tokens")
        terminal.type("/quit\n")
        self.leave(terminal)

    def test_a_million_characters_pasted_into_a_narrow_window(self):
        terminal = Terminal("--max-tokens", "5", columns=20)
        terminal.until(PROMPT)
        text = ("\x1b[200~" + "word " * 200000 + "\x1b[201~").encode()

        def paste():
            for i in range(0, len(text), 512):
                os.write(terminal.main, text[i:i + 512])
            os.write(terminal.main, b"\n")

        writer = threading.Thread(target=paste)
        writer.start()
        terminal.until("too long for the context", 120)
        writer.join()
        terminal.until(PROMPT)
        terminal.type("hello\n")
        terminal.until(r"\[5 tokens")
        terminal.type("/quit\n")
        self.leave(terminal)

    def test_no_control_characters_of_others(self):
        terminal = Terminal("--max-tokens", "5")
        terminal.until(PROMPT)
        terminal.type("/nonsense\x16\x1b[2J\n")  # Ctrl+V takes the ESC literally
        self.assertNotIn("\x1b[2J", terminal.until("/help lists"))
        terminal.type("/quit\n")
        self.leave(terminal)

    def test_no_control_characters_of_names(self):
        for arguments in (("quantize", CHECKPOINT), ("gguf", CHECKPOINT),
                          ("logits", CHECKPOINT, "--ids", "1", "--out")):
            main, child = pty.openpty()
            process = subprocess.Popen([*MNM, *arguments, self.folder / "\x1b[31mred"],
                                       stdout=child, stderr=child)
            os.close(child)
            shown = b""
            with contextlib.suppress(OSError):  # Linux says so that the other side is closed
                while part := os.read(main, 65536):
                    shown += part
            os.close(main)
            self.assertEqual(process.wait(60), 0)
            self.assertIn(b"red", shown)
            self.assertNotIn(b"\x1b[31m", shown)

    def test_termination_restores_the_terminal(self):
        terminal = Terminal()
        terminal.until(PROMPT)
        terminal.process.send_signal(signal.SIGTERM)
        terminal.until("\x1b\\[\\?2004l")
        self.leave(terminal, 143)


command_line.main()
