# SPDX-License-Identifier: MIT
"""Outputs that cannot be: full disks, folders, inputs under other names, runs that are ended
half-way and runs that want the same name. What was there before survives, and no rubbish stays."""
import array
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import command_line
from command_line import CHECKPOINT, MODELS, POSIX, TOKENIZER, mnm, start

try:
    import fcntl
    import resource
except ImportError:
    resource = None


def large_checkpoint(path):
    """2 layers x 512, vocabulary 8192: some 10 million weights, which take a moment to encode."""
    layers, width, heads, kv_heads, ffn, vocab, context = 2, 512, 8, 8, 1536, 8192, 64
    count = vocab * width + layers * (4 * width * width + 3 * ffn * width + 2 * width) + width
    pattern = array.array("f", (((i * 37) % 1009 - 504) / 3000 for i in range(4096))).tobytes()
    weights = (pattern * (4 * count // len(pattern) + 1))[:4 * count]
    path.write_bytes(struct.pack("<8s8Q", b"MNCKPT01", layers, width, heads, kv_heads, ffn, vocab,
                                 context, count).ljust(4096, b"\0") + weights)


def limit_files(size):
    """For preexec_fn: no file may grow beyond this."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


def limit_open(count):
    """For preexec_fn: no more than these may be open at once."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    return limit


class BadOutput(command_line.Case):
    def writers(self, out):
        return [("quantize", CHECKPOINT, out, "-q"), ("gguf", CHECKPOINT, out, "-q"),
                ("logits", CHECKPOINT, "--ids", "1,2", "--out", out)]

    def test_names_that_cannot_be_written(self):
        file = self.folder / "file"
        file.write_text("kept")
        (self.folder / "folder").mkdir()
        for out, why in (("missing/o", "folder"), ("folder", "directory"), ("file/o", "file/o"),
                         ("new/", "directory"), ("n" * 300, "n" * 300)):
            for arguments in self.writers(f"{self.folder}/{out}"):
                with self.subTest(arguments):
                    self.bad(1, *arguments, names=[why])
        self.assertEqual(self.leftovers(), ["file", "folder"])
        self.assertEqual(file.read_text(), "kept")

    # The sanitizers look at memory through pipes of their own, and report what they cannot see.
    @unittest.skipIf(command_line.SANITIZED or not POSIX, "files are counted differently here")
    def test_no_file_may_be_opened_any_more(self):
        out = self.folder / "o"
        for arguments in self.writers(out)[:2]:
            failed = 0
            for count in range(3, 12):
                done = mnm(*arguments, preexec_fn=limit_open(count))
                text = done.stderr.decode()
                self.assertNotIn("unfinished", text)  # a name that nobody has given
                if b"open files" in done.stderr and str(out).encode() in done.stderr:
                    self.assertEqual(done.returncode, 1, text)
                    failed += 1
            self.assertGreater(failed, 0)

    @unittest.skipUnless(POSIX and os.path.exists("/dev/full"), "there is no /dev/full here")
    def test_a_full_device(self):
        for arguments in self.writers("/dev/full"):
            with self.subTest(arguments):
                self.bad(1, *arguments, names=["/dev/full", "No space left", "make room"])
        # The same for what is printed.
        for arguments in [("info", CHECKPOINT), ("info", CHECKPOINT, "--json"), ("--help",),
                          ("--version",), ("chat", CHECKPOINT, "--prompt", "x", "-q"),
                          ("tokenize", __file__, "--tokenizer", TOKENIZER),
                          ("bench", CHECKPOINT, "--signature")]:
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                self.bad(1, *arguments, stdout=full, names=["standard output: No space left"])

    @unittest.skipUnless(POSIX and resource, "no limits here")
    def test_a_disk_that_fills_in_the_middle(self):
        for arguments in self.writers(self.folder / "out"):
            self.good(*arguments)
            whole = (self.folder / "out").stat().st_size
            (self.folder / "out").write_text("the old one")
            # The thread sanitizer's runtime writes a byte to a file of its own before main.
            least = 1 if command_line.THREAD_SANITIZER else 0
            for size in (*range(least, 2), 4096, whole // 2, whole - 1):
                with self.subTest(arguments=arguments, size=size):
                    self.bad(1, *arguments, preexec_fn=limit_files(size),
                             names=[self.folder / "out", "File too large", f"after {size} bytes"])
                    self.assertEqual((self.folder / "out").read_text(), "the old one")
                    self.assertEqual(self.leftovers(), ["out"])
            self.good(*arguments, preexec_fn=limit_files(whole))

    @unittest.skipUnless(sys.platform == "linux" and POSIX and shutil.which("mount"), "no mount")
    def test_a_small_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "mnm-test", disk]
        if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("may not mount a disk")
        try:
            (disk / "out").write_text("the old one")
            for arguments in self.writers(disk / "out")[:2]:
                self.bad(1, *arguments, names=[disk / "out", "No space left", "make room"])
                self.assertEqual([p.name for p in disk.iterdir()], ["out"])
                self.assertEqual((disk / "out").read_text(), "the old one")
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_no_input_under_any_name(self):
        folder = self.folder / "real"
        folder.mkdir()
        for name in ("tales-chat.ckpt", "tokenizer.bin"):
            shutil.copy(MODELS / name, folder / name)
        (folder / "sample").write_text("some words")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        model = folder / "tales-chat.ckpt"
        names = ["{0}", "{0.parent}/./{0.name}", "{0.parent}/../real/{0.name}"]
        if POSIX:
            (self.folder / "link").symlink_to(folder)
            (self.folder / "chain").symlink_to("link")
            names.append("{0.parent.parent}/chain/{0.name}")
            for path in list(folder.iterdir()):
                (self.folder / f"soft-{path.name}").symlink_to(path)
                os.link(path, self.folder / f"hard-{path.name}")
            names += ["{0.parent.parent}/soft-{0.name}", "{0.parent.parent}/hard-{0.name}"]
        for name in names:
            for target in before:
                out = name.format(folder / target)
                commands = [("gguf", model, out, "--sample", folder / "sample")]
                if target != "sample":
                    commands += [("quantize", model, out),
                                 ("logits", model, "--ids", "1", "--out", out)]
                for arguments in commands:
                    with self.subTest(arguments):
                        self.bad(1, *arguments, names=[out, "also an input"])
        self.assertEqual({path.name: path.read_bytes() for path in folder.iterdir()}, before)
        # From within the folder, too.
        self.bad(1, "quantize", "tales-chat.ckpt", "./tales-chat.ckpt", cwd=folder)
        self.assertEqual(model.read_bytes(), before["tales-chat.ckpt"])


@unittest.skipUnless(POSIX, "signals are different here")
class Ended(command_line.Case):
    def setUp(self):
        super().setUp()
        self.source = self.folder / "in.ckpt"
        large_checkpoint(self.source)
        self.out = self.folder / "out.mnm"
        self.out.write_text("the old one")

    def unfinished(self):
        return [name for name in self.leftovers() if name.endswith(".unfinished")]

    def ended_by(self, number, wait):
        """The exit status of a run that got the signal `wait` seconds after its file appeared."""
        process = start("quantize", self.source, self.out, "--type", "q4", "--threads", "1", "-q",
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + 60
        while not self.unfinished() and process.poll() is None:
            self.assertLess(time.monotonic(), end)
        time.sleep(wait)
        process.send_signal(number)
        process.communicate(timeout=60)
        return process.returncode

    def test_signals_that_can_be_caught_leave_nothing(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            for wait in (0, 0.02, 0.1):
                with self.subTest(number=number, wait=wait):
                    self.out.write_text("the old one")
                    ended = self.ended_by(number, wait)
                    self.assertEqual(self.leftovers(), ["in.ckpt", "out.mnm"])
                    self.assertIn(ended, (status, 0))
                    if wait == 0:
                        self.assertEqual(ended, status)
                        self.assertEqual(self.out.read_text(), "the old one")
                    elif ended == 0 or self.out.read_bytes() != b"the old one":
                        # It came when the new file had its name already, which took a sync since.
                        self.good("info", self.out, "--verify")

    def test_a_kill_leaves_the_old_file_and_one_with_a_telling_name(self):
        self.assertEqual(self.ended_by(signal.SIGKILL, 0), -signal.SIGKILL)
        self.assertEqual(self.out.read_text(), "the old one")
        left = self.unfinished()
        self.assertEqual(len(left), 1)
        self.assertRegex(left[0], r"^\.mnm-\d+-\d+-[0-9a-f]{8}\.unfinished$")
        self.assertEqual(self.leftovers(), sorted(["in.ckpt", "out.mnm", *left]))
        # The next run is not disturbed by it, nor by what others write at the time.
        self.good("quantize", self.source, self.out, "-q")
        self.good("info", self.out, "--verify")
        self.assertEqual(self.unfinished(), left)
        # Ten minutes later it is taken away, but for a file that is locked or has another name.
        names = [left[0], ".mnm-1-0-00000000.unfinished", "mnm-1.unfinished", ".mnm-1.partial"]
        for name in names:
            (self.folder / name).touch()
            os.utime(self.folder / name, (time.time() - 700, time.time() - 700))
        with open(self.folder / names[1], "r+b") as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            self.good("quantize", self.source, self.out, "-q")
            self.assertEqual(self.leftovers(), sorted([*names[1:], "in.ckpt", "out.mnm"]))
        self.good("quantize", self.source, self.out, "-q")
        self.assertEqual(self.leftovers(), sorted([*names[2:], "in.ckpt", "out.mnm"]))

    def test_an_input_that_changes_meanwhile(self):
        for attempt in range(5):
            process = start("quantize", self.source, self.out, "--type", "q4", "--threads", "1",
                            "-q", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while not self.unfinished() and process.poll() is None:
                pass
            with open(self.source, "r+b") as file:
                file.seek(5000)
                file.write(b"\0")
            errors = process.communicate(timeout=60)[1].decode()
            if process.returncode != 0:  # else it was through before
                break
        self.assertEqual(process.returncode, 1)
        self.assertIn(f"{self.source}: was changed while it was read", errors)
        self.assertEqual(self.leftovers(), ["in.ckpt", "out.mnm"])

    def test_two_runs_to_the_same_name(self):
        kinds = ("q8", "q4", "f32")
        running = [start("quantize", self.source, self.out, "--type", kind, "-q",
                         stdout=subprocess.DEVNULL) for kind in kinds]
        self.assertEqual([process.wait(120) for process in running], [0, 0, 0])
        self.assertEqual(self.leftovers(), ["in.ckpt", "out.mnm"])
        found = self.json("info", self.out, "--verify")
        self.assertIn(found["type"], kinds)
        self.assertEqual(found["tensors_verified"], 14)
        # Byte for byte what that run alone writes.
        self.good("quantize", self.source, self.folder / "alone", "--type", found["type"], "-q")
        self.assertEqual(self.out.read_bytes(), (self.folder / "alone").read_bytes())


command_line.main()
