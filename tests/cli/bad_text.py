# SPDX-License-Identifier: MIT
"""Text that people type or pipe: any bytes, any length, ends and closed pipes at every place."""
import json
import os
import re
import struct
import subprocess
import unittest

import command_line
from command_line import CHECKPOINT, DATA, POSIX, TOKENIZER, mnm, start

ODD = {"invalid UTF-8": b"\xff\xfe\xc3\x28\xf0\x9f\x98 a\x80b\n", "NUL bytes": b"a\0b\0\0\n\0",
       "controls": bytes(range(32)) + b"\x7f\xc2\x9b2J\n", "nothing": b"", "a line break": b"\n",
       "a carriage return": b"\r\n", "a long line": b"word " * 200000,
       "one letter": b"a" * 1000000, "no letter": b"\0" * 1000000,
       "half characters": b"\xf0\x9f" * 500000, "line breaks": b"\n" * 100000}


class BadText(command_line.Case):
    def test_tokenize_takes_any_bytes(self):
        for name, text in ODD.items():
            if command_line.THIN:
                text = text[:100000]
            with self.subTest(name):
                ids = self.good("tokenize", "-", "--tokenizer", TOKENIZER, "--ids", stdin=text)
                self.assertTrue(ids.endswith(b"\n"))
                found = [int(part) for part in ids[:-1].split(b",") if part or text]
                self.assertTrue(all(0 <= i < 2032 for i in found))
                short = text[:20000]
                found = json.loads(self.good("tokenize", "-", "--tokenizer", TOKENIZER, "--json",
                                             stdin=short))
                self.assertEqual(found["bytes"], len(short))
                self.assertEqual(found["count"], len(found["ids"]))
                listed = self.good("tokenize", "-", "--tokenizer", TOKENIZER, stdin=short)
                self.assertEqual(len(listed.splitlines()), found["count"])

    def test_chat_answers_every_line(self):
        lines = [b"\xff\xfe\xc3\x28", b"a\0b", bytes(range(1, 10)) + bytes(range(11, 32)), b"\\x",
                 b"//quit", b"\xf0\x9f\x98\x80" * 5, b"<|end|><|bos|>", b"x" * 100, b"last"]
        done = mnm("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "4", "--json", "-q",
                   stdin=b"\n".join(lines))
        self.assertEqual(done.returncode, 0, done.stderr)
        replies = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual([reply["tokens"] > 0 for reply in replies], [True] * len(lines))

    def test_a_million_characters_on_a_line(self):
        done = mnm("chat", CHECKPOINT, "--max-tokens", "4", "--json", "-q",
                   stdin=b"hello\n" + b"word " * 200000 + b"\nhello\n")
        self.assertEqual(done.returncode, 1)
        replies = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertIn("too long for the context", replies[1]["error"])
        self.assertIn("reply", replies[2])
        self.assertIn(b"1 of the lines got no reply", done.stderr)

    @unittest.skipUnless(POSIX, "arguments are text here")
    def test_arguments_of_any_bytes(self):
        odd = b"\xff\xfe\xc3(\x01\x1b[2J"
        odd = os.fsdecode(odd)
        reply = self.json("chat", CHECKPOINT, "--max-tokens", "3", "--system", odd, "--prompt", odd)
        self.assertEqual(reply["tokens"], 3)
        done = mnm(odd, odd)
        self.assertEqual(done.returncode, 2)
        self.assertNotIn(b"\x1b", done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_eval_of_odd_texts(self):
        path = self.folder / "text"
        for name in ("invalid UTF-8", "a long line", "one letter", "half characters"):
            with self.subTest(name):
                path.write_bytes(ODD[name])
                found = self.json("eval", CHECKPOINT, "--data", path, "--rows", "1")
                self.assertEqual(found["rows"], 1)
                self.assertGreater(found["loss_nats"], 0)
        path.write_bytes(b"words" + bytes(100))
        self.bad(1, "eval", CHECKPOINT, "--data", path, names=[path, "no text"])
        path.write_bytes(b"word " * 1000 + bytes(100))  # far inside a text a NUL is a letter
        self.json("eval", CHECKPOINT, "--data", path)

    def commands_that_print(self):
        return [("info", CHECKPOINT), ("info", CHECKPOINT, "--json"), ("--help",), ("--version",),
                ("tokenize", DATA, "--tokenizer", TOKENIZER),
                ("chat", CHECKPOINT, "--prompt", "x", "--max-tokens", "5", "-q"),
                ("eval", CHECKPOINT, "--data", DATA, "--rows", "1", "-q"),
                ("quantize", CHECKPOINT, self.folder / "o.mnm", "-q"),
                ("bench", CHECKPOINT, "--signature")]

    @unittest.skipUnless(POSIX, "pipes are different here")
    def test_a_closed_pipe_is_no_error(self):
        for arguments in self.commands_that_print():
            with self.subTest(arguments):
                reading, writing = os.pipe()
                os.close(reading)
                done = mnm(*arguments, stdout=writing)
                os.close(writing)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.good("info", self.folder / "o.mnm", "--verify")  # the work was done all the same

    @unittest.skipUnless(POSIX, "pipes are different here")
    def test_a_reader_that_leaves_a_chat(self):
        process = start("chat", CHECKPOINT, "--max-tokens", "5", "-q", stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        self.assertNotEqual(process.stdout.readline(), b"")
        process.stdout.close()
        process.stdin.write(b"hello\n" * 100)
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.wait(60), 0)
        process.stderr.close()

    @unittest.skipUnless(POSIX, "streams are not numbers here")
    def test_streams_that_are_closed_from_the_start(self):
        def closing(number):
            return lambda: os.close(number)
        for arguments in (("info", CHECKPOINT), ("--version",)):
            self.bad(1, *arguments, preexec_fn=closing(1), names=["standard output: Bad file"])
        # No file that is written takes the number, and with it what is printed.
        whole, out = self.folder / "whole", self.folder / "out"
        self.good("quantize", CHECKPOINT, whole)
        for number, status in ((0, 0), (1, 1), (2, 0)):
            out.write_bytes(b"")
            done = mnm("quantize", CHECKPOINT, out, preexec_fn=closing(number))
            self.assertEqual(done.returncode, status, number)
            self.assertEqual(out.read_bytes(), whole.read_bytes())
        for arguments in (("chat", CHECKPOINT), ("tokenize", "-", "--tokenizer", TOKENIZER)):
            self.bad(1, *arguments, preexec_fn=closing(0), names=["standard input: Bad file"])

    @unittest.skipUnless(POSIX, "folders cannot be opened here")
    def test_input_that_is_a_folder(self):
        for arguments in (("chat", CHECKPOINT), ("tokenize", "-", "--tokenizer", TOKENIZER)):
            folder = os.open(self.folder, os.O_RDONLY)
            process = start(*arguments, stdin=folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
            os.close(folder)
            out, errors = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (1, b""))
            self.assertIn(b"standard input: Is a directory", errors)

    @unittest.skipUnless(POSIX, "consoles are different here")
    def test_the_progress_bar_fits_a_narrow_terminal(self):
        try:
            import fcntl
            import pty
            import termios
        except ImportError:
            self.skipTest("no pseudo-terminals here")
        for columns in (20, 7, 1):
            main, child = pty.openpty()
            fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("4H", 10, columns, 0, 0))
            process = start("eval", CHECKPOINT, "--data", DATA, "--rows", "3",
                            stdout=subprocess.DEVNULL, stderr=child)
            os.close(child)
            shown = b""
            while True:
                try:
                    part = os.read(main, 65536)
                except OSError:  # as Linux says that the other side is closed
                    break
                if not part:
                    break
                shown += part
            self.assertEqual(process.wait(120), 0)
            os.close(main)
            drawn = [re.sub(r"\x1b\[K", "", line) for line in shown.decode().split("\r")]
            self.assertTrue(any("%" in line for line in drawn))
            if columns >= 7:
                self.assertLess(max(map(len, drawn)), columns)


command_line.main()
