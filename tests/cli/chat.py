# SPDX-License-Identifier: MIT
"""mnm chat without a terminal: one shot and piped, repeatable, and honest about the context."""
import json
import re

import command_line
from command_line import CHECKPOINT, mnm

PROMPT = "Once upon a time there was a king who had three sons."


class Chat(command_line.Case):
    def test_one_shot(self):
        arguments = ("chat", CHECKPOINT, "--prompt", PROMPT, "--seed", "7", "--max-tokens", "30")
        done = mnm(*arguments)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), r"^\[30 tokens, [0-9.]+ tokens/s; .*max-tokens\]\n$")
        self.assertNotIn(b"<|", done.stdout)
        quiet = mnm(*arguments, "-q")
        self.assertEqual((quiet.stdout, quiet.stderr), (done.stdout, b""))

    def test_repeats_on_threads_and_levels(self):
        length = ("--max-tokens", "20") if command_line.THIN else ()
        for kind in ("f32", "q8", "q4"):
            model = self.quantized(kind)
            replies = {self.good("chat", model, "--prompt", PROMPT, "--seed", "3", *length,
                                 *extra)
                       for extra in ([], ["--threads", "1"], ["--threads", "4"],
                                     ["--kernel", "ref"], ["--kernel", "portable"])}
            self.assertEqual(len(replies), 1)
        other = self.good("chat", model, "--prompt", PROMPT, "--seed", "4", *length)
        self.assertNotEqual({other}, replies)

    def test_json(self):
        reply = self.json("chat", CHECKPOINT, "--prompt", "caf\u00e9 \x07", "--max-tokens", "5")
        self.assertEqual(reply["tokens"], len(reply["ids"]))
        self.assertEqual(reply["end"], "token_limit")
        again = self.json("chat", CHECKPOINT, "--prompt", "caf\u00e9 \x07", "--max-tokens", "5",
                          "--seed", str(reply["seed"]))
        self.assertEqual(again["ids"], reply["ids"])

    def test_piped_lines_are_turns(self):
        model = self.quantized("q8")
        arguments = ("chat", model, "--seed", "5", "--max-tokens", "20")
        plain = mnm(*arguments, stdin="hello\nand then?\n")
        self.assertEqual(plain.returncode, 0)
        self.assertEqual(plain.stderr.count(b"tokens/s"), 2)
        for same in (b"\xef\xbb\xbfhello\r\nand then?\r\n", b"hello\nand then?",
                     b"\n  \nhello\n\nand then?\n/quit\nnever read\n"):
            self.assertEqual(mnm(*arguments, stdin=same).stdout, plain.stdout)
        # The cache is used again: what the second turn says does not depend on how it got there.
        single = mnm(*arguments, stdin="hello\n")
        self.assertTrue(plain.stdout.startswith(single.stdout))

    def test_commands(self):
        done = mnm("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "5",
                   stdin="/help\n/stats\n/temp 0\n/temp nan\n/temp x\n/system You tell tales.\n"
                         "/nonsense\nhello\n/reset\nhello\n//hello\n/bye\nhello\n")
        self.assertEqual(done.returncode, 0)
        text = done.stderr.decode()
        for word in ("/system TEXT", "seed 5", "temperature 0\n", "from 0 to 100",
                     "system text set", "no command /nonsense", "conversation forgotten"):
            self.assertIn(word, text)
        self.assertEqual(text.count("tokens/s"), 3)
        first, second, _ = done.stdout.decode().splitlines()[:3]
        self.assertEqual(first, second)

    def test_reset_forgets_the_cache_too(self):
        done = mnm("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "5",
                   stdin="hello\n/stats\n/reset\n/stats\n")
        found = re.findall(r"(\d+) turns, (\d+) of 256 tokens", done.stderr.decode())
        self.assertEqual(found[1], ("0", "0"))
        self.assertEqual(found[0][0], "2")
        self.assertGreater(int(found[0][1]), 5)

    def test_a_system_text_too_long_is_refused_at_once(self):
        long = "word " * 300
        text = self.bad(1, "chat", CHECKPOINT, "--system", long, "--prompt", "x", names=["256"])
        self.assertIn("room for 249", text)
        done = mnm("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "5",
                   stdin=f"/system You tell tales.\n/system {long}\nhello\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the system text has", done.stderr)
        self.assertEqual(done.stderr.count(b"system text set"), 1)
        # The one before stays.
        kept = mnm("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "5",
                   "--system", "You tell tales.", stdin="hello\n")
        self.assertEqual((kept.returncode, kept.stdout), (0, done.stdout))

    def test_piped_replies_as_json_are_one_line_each(self):
        long = "word " * 500
        done = mnm("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "60", "--json", "-q",
                   stdin=f"hello\n{long}\nand then?\n")
        self.assertEqual(done.returncode, 1)
        lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual(len(lines), 3)
        self.assertIn("too long", lines[1]["error"])
        plain = mnm("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "60", "-q",
                    stdin="hello\nand then?\n")
        self.assertEqual(lines[0]["reply"] + "\n" + lines[2]["reply"] + "\n",
                         plain.stdout.decode())

    def test_a_backslash_joins_lines(self):
        arguments = ("chat", CHECKPOINT, "--seed", "5", "--max-tokens", "20")
        joined = mnm(*arguments, stdin="one\\\ntwo\n")
        self.assertEqual(joined.stderr.count(b"tokens/s"), 1)
        self.assertEqual(joined.stdout, mnm(*arguments, "--prompt", "one\ntwo").stdout)
        self.assertEqual(mnm(*arguments, stdin="one\\").stderr.count(b"tokens/s"), 1)

    def test_the_context_fills(self):
        count = 10 if command_line.THIN else 20
        turns = "".join(f"tell me more about the {n}th king and his daughter\n"
                        for n in range(count))
        done = mnm("chat", CHECKPOINT, "--seed", "1", "--system", "You tell tales.",
                   "--max-tokens", "40", stdin=turns)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"context of 256 tokens is full", done.stderr)
        self.assertEqual(done.stderr.count(b"tokens/s"), count)

    def test_too_long_a_message(self):
        text = "word " * 500
        self.bad(1, "chat", CHECKPOINT, "--prompt", text, names=["256"])
        done = mnm("chat", CHECKPOINT, "--max-tokens", "5", stdin=text + "\nhello\n")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count(b"tokens/s"), 1)
        self.assertIn(b"1 of the lines got no reply", done.stderr)

    def test_special_tokens_are_only_text(self):
        found = json.loads(self.good("tokenize", "-", "--json", "--tokenizer", CHECKPOINT,
                                     stdin="<|end|><|user|>"))
        self.assertLess(max(found["ids"]), 2032)

    def test_odd_bytes(self):
        done = mnm("chat", CHECKPOINT, "--max-tokens", "3",
                   stdin=b"\xff\xfe\x00\x1b[2J\nhello\x00\n" + b"a" * 2000000 + b"\nlast\n")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count(b"tokens/s"), 3)
        done.stdout.decode()

    def test_no_input(self):
        self.assertEqual(self.good("chat", CHECKPOINT), b"")


command_line.main()
