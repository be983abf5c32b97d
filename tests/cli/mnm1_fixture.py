# SPDX-License-Identifier: MIT
"""Format 1 comes out as a separate program wrote it, to the byte."""
import hashlib
import unittest

import command_line
from command_line import FIXTURES

TALES = FIXTURES / "tales"


@unittest.skipUnless((TALES / "expected.sha256").exists(), "the fixtures are not there")
class Version1(command_line.Case):
    def test_bytes(self):
        arguments = {"chat-f32.mnm": ["f32"], "chat-q8.mnm": ["q8"], "chat-q4.mnm": ["q4"],
                     "chat-q4-nofit.mnm": ["q4", "--no-fit"]}
        for line in (TALES / "expected.sha256").read_text().splitlines():
            digest, name = line.split()
            out = self.folder / name
            self.good("quantize", TALES / "chat.ckpt", out, "-q", "--format", "mnm1", "--type",
                      *arguments[name])
            self.assertEqual(hashlib.sha256(out.read_bytes()).hexdigest(), digest, name)


command_line.main()
