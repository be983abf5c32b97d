# SPDX-License-Identifier: MIT
"""Help, version, usage errors (status 2) and files that are not there (status 1)."""
import os

import command_line
from command_line import CHECKPOINT, DATA, TOKENIZER, mnm

COMMANDS = ("quantize", "chat", "eval", "gguf", "bench", "info", "tokenize", "logits",
            "completion")


class Usage(command_line.Case):
    def test_help_everywhere_with_an_example(self):
        for arguments in [()] + [(command,) for command in COMMANDS]:
            text = self.good(*arguments, "--help").decode()
            self.assertIn("Example:\n  ", text)
            for command in arguments:
                self.assertIn(f"Usage: mnm {command}", text)
        text = self.good("--help").decode()
        for command in COMMANDS:
            self.assertIn(command, text)

    def test_version_names_the_levels(self):
        text = self.good("--version").decode()
        for word in ("mnm ", "compiler:", "kernels built: ref", "kernels usable here: ref",
                     "line editing: "):
            self.assertIn(word, text)

    def test_usage_errors(self):
        for arguments in [(), ("nonsense",), ("quantize",), ("quantize", "a"), ("info", "a", "b"),
                          ("info", CHECKPOINT, "--nonsense"), ("chat", CHECKPOINT, "--temp", "nan"),
                          ("chat", CHECKPOINT, "--top-p", "2"),
                          ("chat", CHECKPOINT, "--seed", "-1"), ("eval", CHECKPOINT),
                          ("eval", CHECKPOINT, "--data", DATA, "--rows", "0"),
                          ("bench", CHECKPOINT, "--threads", "0"),
                          ("logits", CHECKPOINT, "--ids", "1,x", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", "1,-1", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", "1,,2", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", "1,2,", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", ",1", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", "", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", "1 2", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", "1", "--ids", "2", "--out", "o"),
                          ("logits", CHECKPOINT, "--ids", "4294967296", "--out", "o"),
                          ("quantize", CHECKPOINT, "o", "--rope-base", "inf")]:
            with self.subTest(arguments):
                self.bad(2, *arguments, names=["--help"])

    def test_names_that_are_none(self):
        for arguments in (("quantize", CHECKPOINT, ""), ("quantize", "", "o"), ("info", ""),
                          ("quantize", CHECKPOINT, "o", "--tokenizer", ""),
                          ("gguf", CHECKPOINT, ""),
                          ("chat", CHECKPOINT, "--tokenizer", ""), ("tokenize", ""),
                          ("eval", CHECKPOINT, "--data", ""), ("bench", "")):
            self.bad(2, *arguments, names=["empty text"])
        for arguments in (("quantize", CHECKPOINT, "-"), ("gguf", CHECKPOINT, "-"),
                          ("logits", CHECKPOINT, "--ids", "1", "--out", "-")):
            self.bad(2, *arguments, names=["/dev/stdout", "./-"])

    def test_a_bad_type_lists_the_types(self):
        self.bad(2, "quantize", CHECKPOINT, "o.mnm", "--type", "q9",
                 names=["q8, q4, f32", "nearest"])
        said = self.bad(2, "quantize", CHECKPOINT, "o.mnm", "--type", "bfloat16",
                        names=["q8, q4, f32"])
        self.assertNotIn("nearest", said)
        self.bad(2, "gguf", CHECKPOINT, "o.gguf", "--type", "q4km", names=["nearest: q4_0"])
        self.bad(2, "gguf", CHECKPOINT, "o.gguf", "--pre", "nanochat", names=["llama-bpe, qwen2"])

    def test_a_near_miss_gets_a_hint(self):
        for typed, meant in (("quantise", "quantize"), ("evall", "eval"), ("inf", "info")):
            self.bad(2, typed, CHECKPOINT, "o.mnm", names=[f"did you mean {meant}?"])
        said = self.bad(2, "nonsense",
                        names=["'nonsense' is not a command", "quantize, chat, eval"])
        self.assertNotIn("did you mean", said)
        self.bad(2, names=["no command", "quantize, chat, eval", "mnm --help"])

    def test_kernels_can_be_forced(self):
        for environment in ({}, {"MNM_KERNEL": "nonsense"}):
            flag = [] if environment else ["--kernel", "nonsense"]
            self.bad(2, "bench", CHECKPOINT, *flag, env={**os.environ, **environment},
                     names=["nonsense", "usable: ref, portable", *environment])
        # A flag wins, an empty variable is none, and what needs no kernel does not look.
        environment = {**os.environ, "MNM_KERNEL": "nonsense"}
        self.good("info", CHECKPOINT, env=environment)
        self.good("quantize", CHECKPOINT, self.folder / "o.mnm", env=environment)
        self.assertEqual(self.json("bench", CHECKPOINT, "--signature", "--kernel", "ref",
                                   env=environment)["kernel"], "ref")
        self.good("bench", CHECKPOINT, "--signature", env={**os.environ, "MNM_KERNEL": ""})
        environment = {**os.environ, "MNM_KERNEL": "ref"}
        self.assertEqual(self.json("bench", CHECKPOINT, "--signature", env=environment)["kernel"],
                         "ref")

    def test_missing_files_are_named(self):
        missing = str(self.folder / "missing")
        out = str(self.folder / "out")
        for arguments in [("quantize", missing, out), ("chat", missing), ("info", missing),
                          ("eval", missing, "--data", DATA), ("gguf", missing, out),
                          ("eval", CHECKPOINT, "--data", missing), ("bench", missing),
                          ("eval", CHECKPOINT, "--data", DATA, "--reference", missing),
                          ("tokenize", missing, "--tokenizer", TOKENIZER),
                          ("tokenize", "-", "--tokenizer", missing),
                          ("chat", CHECKPOINT, "--tokenizer", missing),
                          ("gguf", CHECKPOINT, out, "--sample", missing),
                          ("logits", missing, "--ids", "1", "--out", out)]:
            with self.subTest(arguments):
                self.bad(1, *arguments, names=[missing])
        self.assertEqual(self.leftovers(), [])

    def test_folders_and_other_files(self):
        self.bad(1, "info", self.folder, names=[self.folder])
        self.bad(1, "chat", DATA, names=[DATA])
        page = self.folder / "model.mnm"
        page.write_text("<!DOCTYPE html><html><body>404</body></html>")
        self.bad(1, "info", page, names=["HTML"])
        page.write_text("")
        self.bad(1, "info", page, names=[page])

    def test_an_error_stays_one_line(self):
        self.bad(1, "info", self.folder / "two\nlines\x1b[2J")
        text = mnm("info", self.folder / "a\x1b[2Jb").stderr
        self.assertNotIn(b"\x1b", text)


command_line.main()
