# SPDX-License-Identifier: MIT
"""Running mnm as people and scripts do. Each test file ends in command_line.main()."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

# A foreign build runs through an emulator or Wine.
MNM = [*shlex.split(os.environ.get("MNM_WRAPPER", "")), os.environ["MNM"]]
# The program is one of a POSIX system (not merely a POSIX system's Wine).
POSIX = os.name == "posix" and not MNM[-1].endswith(".exe")
# An emulated processor is a hundred times slower, a sanitizer ten times: a part of what takes long.
THIN = os.environ.get("MNM_THIN") == "1"
EMULATED = MNM[0].startswith("qemu-")
THREAD_SANITIZER = "TSAN_OPTIONS" in os.environ
SANITIZED = THREAD_SANITIZER or "ASAN_OPTIONS" in os.environ
MODELS = pathlib.Path(os.environ["MNM_SOURCE_ROOT"]) / "models"
CHECKPOINT = str(MODELS / "tales-chat.ckpt")
TOKENIZER = str(MODELS / "tokenizer.bin")
DATA = str(MODELS / "tales-chat-val.tok")
FIXTURES = pathlib.Path(os.environ["MNM_FIXTURES"])
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0

# A parent that ignores signals (nohup, a job in the background) would have mnm ignore them too.
for name in ("SIGHUP", "SIGINT", "SIGTERM"):
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_IGN:
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def mnm(*arguments, stdin=b"", **options):
    """Runs mnm to its end; stdout and stderr are bytes."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    return subprocess.run([*MNM, *map(str, arguments)], input=stdin, timeout=600 if THIN else 120,
                          stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          **options)


def start(*arguments, **options):
    """Starts mnm and returns the process."""
    return subprocess.Popen([*MNM, *map(str, arguments)], **options)


class Case(unittest.TestCase):
    """A folder of its own, and what is expected of a run."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def good(self, *arguments, **options):
        done = mnm(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done.stdout

    def json(self, *arguments, **options):
        return json.loads(self.good(*arguments, "--json", **options))

    def bad(self, status, *arguments, names=(), **options):
        """One line of error that names each of `names`."""
        done = mnm(*arguments, **options)
        text = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, status, text)
        self.assertTrue(text.startswith("mnm: error: "), text)
        self.assertEqual(text.count("\n"), 1, text)
        for name in names:
            self.assertIn(str(name), text)
        return text

    def quantized(self, kind="q8", *arguments):
        path = self.folder / f"{kind}.mnm"
        self.good("quantize", CHECKPOINT, path, "--type", kind, "-q", *arguments)
        return path

    def leftovers(self):
        return sorted(p.name for p in self.folder.iterdir())


def main():
    """Ends with the status that meson reads: 77 where nothing could run."""
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun == len(result.skipped) else 0)
