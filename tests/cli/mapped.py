# SPDX-License-Identifier: MIT
"""A model file that is replaced, or cut, while a chat has it mapped."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import command_line
from command_line import CHECKPOINT, POSIX, TOKENIZER, mnm, start

if not POSIX:
    print("skipped: nobody can replace or cut a mapped file here")
    sys.exit(77)


class Mapped(command_line.Case):
    def setUp(self):
        super().setUp()
        self.model = self.quantized("q8").rename(self.folder / "model\x1b[2J.mnm")
        self.arguments = ("chat", self.model, "--seed", "5", "--max-tokens", "20", "--json", "-q")

    def running(self):
        return start(*self.arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)

    def ask(self, process, text):
        process.stdin.write(text + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())["reply"]

    def test_a_file_that_is_replaced_by_renaming(self):
        undisturbed = [json.loads(line)["reply"] for line in
                       mnm(*self.arguments, stdin="hello\nand then?\n").stdout.splitlines()]
        process = self.running()
        first = self.ask(process, b"hello")
        # As mnm itself does it: the running chat keeps the old file to its end.
        self.good("quantize", CHECKPOINT, self.model, "--type", "q4", "-q")
        second = self.ask(process, b"and then?")
        self.assertEqual(process.communicate(timeout=60)[1], b"")
        self.assertEqual(process.returncode, 0)
        self.assertEqual([first, second], undisturbed)
        self.assertEqual(self.json("info", self.model)["type"], "q4")

    def test_a_file_that_is_removed(self):
        process = self.running()
        first = self.ask(process, b"hello")
        self.model.unlink()
        self.assertNotEqual(self.ask(process, b"and then?"), "")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertNotEqual(first, "")

    def test_a_file_that_is_cut_in_place(self):
        for size in (0, 4096):
            shutil.copy(self.model, self.folder / "whole")
            process = self.running()
            self.ask(process, b"hello")
            os.truncate(self.model, size)
            out, errors = process.communicate(b"and then?\n", timeout=60)
            self.assertEqual(process.returncode, 1, errors)
            self.assertEqual(out, b"")
            text = errors.decode()
            shown = str(self.model).replace("\x1b", "?")
            self.assertTrue(text.startswith(f"mnm: error: {shown}: was cut short"), text)
            self.assertIn("run the command again", text)
            self.assertEqual(text.count("\n"), 1)
            os.replace(self.folder / "whole", self.model)
        self.good("info", self.model, "--verify")

    def test_an_output_that_was_begun_is_removed(self):
        # A checkpoint cut while it is converted: the temporary file goes, the old one stays.
        source = self.folder / "in.ckpt"
        data = pathlib.Path(CHECKPOINT).read_bytes()
        out = self.folder / "out.mnm"
        for _ in range(20):
            source.write_bytes(data)
            out.write_text("the old one")
            process = start("quantize", source, out, "--type", "q4", "--threads", "1", "-q",
                            "--tokenizer", TOKENIZER, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)
            while process.poll() is None and not list(self.folder.glob(".mnm-*.unfinished")):
                pass
            os.truncate(source, 4096)
            errors = process.communicate(timeout=60)[1]
            self.assertEqual(list(self.folder.glob(".mnm-*")), [])
            if process.returncode != 0:
                break  # else it was through before
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn(str(source).encode(), errors)
        self.assertEqual(out.read_text(), "the old one")


command_line.main()
