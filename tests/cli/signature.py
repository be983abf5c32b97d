# SPDX-License-Identifier: MIT
"""The signature: a hash of the logits of a fixed prompt, the same on every platform.

It changes only when the arithmetic is changed on purpose; docs/numerics.md says what it covers.
"""
import re

import command_line
from command_line import CHECKPOINT

SIGNATURES = {"f32": "918dbef1bc96d6c1", "q8": "25496b6883bfe75d", "q4": "dcecac59162d61e0"}


class Signature(command_line.Case):
    def test_every_level_thread_count_and_weight_type(self):
        version = self.good("--version").decode()
        levels = re.search(r"kernels usable here: (.*)", version).group(1).strip().split(", ")
        self.assertEqual(levels[:1], ["ref"])
        for kind, expected in SIGNATURES.items():
            model = CHECKPOINT if kind == "f32" else self.quantized(kind)
            for level in levels:
                for threads in (1, 2, 3):
                    found = self.good("bench", model, "--signature", "--kernel", level,
                                      "--threads", threads).decode().strip()
                    self.assertEqual(found, expected, (kind, level, threads))
            print(f"signature {kind} {expected}: {', '.join(levels)}; 1, 2, 3 threads")


command_line.main()
