# SPDX-License-Identifier: MIT
"""./demo from another folder: names on its command line are meant from where they were typed."""
import os
import shutil
import subprocess
import sys

import command_line
from command_line import CHECKPOINT, DATA, POSIX, TOKENIZER

if not POSIX or os.environ.get("MNM_WRAPPER") or not shutil.which("bash"):
    print("skipped: no shell here")
    sys.exit(77)

ROOT = command_line.MODELS.parent


class Demo(command_line.Case):
    def setUp(self):
        super().setUp()
        # A tree of its own, built already: meson has nothing to do, and nothing is installed.
        self.tree = self.folder / "tree"
        (self.tree / ".ci").mkdir(parents=True)
        (self.tree / ".ci" / "packages").write_text(
            "build_packages=()\ninstall_packages() { :; }\n")
        (self.tree / "build" / "cli").mkdir(parents=True)
        (self.tree / "build" / "build.ninja").touch()
        (self.tree / "build" / "cli" / "mnm").symlink_to(os.environ["MNM"])
        shutil.copy(ROOT / "demo", self.tree / "demo")
        (self.tree / "models").symlink_to(command_line.MODELS)
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "meson").write_text("#!/bin/sh\n")
        (tools / "meson").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
        self.elsewhere = self.folder / "else where"
        self.elsewhere.mkdir()

    def demo(self, *arguments):
        return subprocess.run([str(self.tree / "demo"), *arguments], cwd=self.elsewhere,
                              env=self.environment, stdin=subprocess.DEVNULL, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_the_shipped_model(self):
        done = self.demo()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"KL divergence", done.stdout)
        self.assertTrue((self.tree / "build/demo/tales-chat-q8.mnm").exists())

    def test_relative_names(self):
        shutil.copy(CHECKPOINT, self.elsewhere / "my.ckpt")
        shutil.copy(TOKENIZER, self.elsewhere / "tokenizer.bin")
        shutil.copy(DATA, self.folder / "my.tok")
        done = self.demo("my.ckpt", "q4", "../my.tok")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"targets         3,134", done.stdout)
        found = self.json("info", self.tree / "build/demo/my-q4.mnm")
        self.assertEqual(found["type"], "q4")
        # A name of the tree is not meant.
        done = self.demo("models/tales-chat.ckpt")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no such file", done.stderr)

    def test_usage(self):
        self.assertEqual(self.demo("--help").returncode, 0)
        self.assertEqual(self.demo("--nonsense").returncode, 2)
        self.assertEqual(self.demo("a", "q8", "b", "c").returncode, 2)


command_line.main()
