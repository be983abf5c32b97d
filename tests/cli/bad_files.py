# SPDX-License-Identifier: MIT
"""Damaged and wrong files, given to every command that takes one: status 1, one line that names the
file, and no more memory than the file warrants. tests/hostile/ does the same by the thousand."""
import array
import itertools
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

import command_line
from command_line import AS_ROOT, DATA, POSIX, TOKENIZER, start

LARGEST = 2**64 - 1


def tiny_checkpoint(path):
    """1 layer x 32 with the vocabulary of the shipped tokenizer, every weight a small number."""
    layers, width, heads, kv_heads, ffn, vocab, context = 1, 32, 2, 2, 32, 2048, 64
    count = vocab * width + 96 * width + width * width + 3 * ffn * width + 3 * width
    weights = array.array("f", (((i * 37) % 101 - 50) / 300 for i in range(count)))
    header = struct.pack("<8s8Q", b"MNCKPT01", layers, width, heads, kv_heads, ffn, vocab, context,
                         count)
    path.write_bytes(header.ljust(4096, b"\0") + weights.tobytes())


def peak_memory(*arguments):
    """Exit status, what was printed on standard error, and the most KiB the process held."""
    with tempfile.TemporaryFile() as errors:
        # Meson has the C library fill what it allocates; that would count as used.
        environment = {**os.environ, "MALLOC_PERTURB_": "0"}
        process = start(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return process.returncode, errors.read().decode(errors="replace"), usage.ru_maxrss


class BadFiles(command_line.Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "tiny.ckpt"
        tiny_checkpoint(self.model)
        shutil.copy(TOKENIZER, self.folder / "tokenizer.bin")
        self.out = self.folder / "out"

    def commands_for(self, model):
        return [("info", model, "--verify"), ("chat", model, "--prompt", "x", "--max-tokens", "1"),
                ("eval", model, "--data", DATA, "--rows", "1"), ("bench", model, "--signature"),
                ("logits", model, "--ids", "1", "--out", self.out), ("quantize", model, self.out),
                ("gguf", model, self.out), ("tokenize", "-", "--tokenizer", model),
                ("eval", self.model, "--data", DATA, "--rows", "1", "--reference", model)]

    def refused(self, arguments, path):
        """Status 1 and one line that names the file; nothing is left."""
        before = self.leftovers()
        text = self.bad(1, *arguments, names=[path])
        self.assertNotIn("AddressSanitizer", text)
        self.assertEqual(self.leftovers(), before)
        return text

    def test_every_command_refuses_every_wrong_kind_of_file(self):
        wrong = {"missing": None, "empty": b"", "page": b"<!DOCTYPE html><html></html>",
                 "zeros": bytes(5000), "text": b"words\n", "magic": b"MNMODEL2",
                 "zip": b"PK\3\4" + bytes(100)}
        paths = []
        for name, content in wrong.items():
            paths.append(self.folder / name)
            if content is not None:
                paths[-1].write_bytes(content)
        folder = self.folder / "folder"
        folder.mkdir()
        paths.append(folder)
        if POSIX:
            paths.append(self.folder / "pipe")
            os.mkfifo(paths[-1])
            paths.append(self.folder / "loop")
            paths[-1].symlink_to(paths[-1])
            paths.append(self.folder / "dangling")
            paths[-1].symlink_to(self.folder / "nowhere")
        for path in paths:
            for arguments in self.commands_for(path):
                with self.subTest(arguments):
                    self.refused(arguments, path)
            # Files beside the model. Text is text: only what is none is refused there.
            others = [("chat", self.model, "--prompt", "x", "--tokenizer", path),
                      ("quantize", self.model, self.out, "--tokenizer", path),
                      ("gguf", self.model, self.out, "--tokenizer", path)]
            if path.name not in ("text", "page"):
                others += [("eval", self.model, "--data", path),
                           ("gguf", self.model, self.out, "--sample", path)]
            for arguments in others:
                with self.subTest(arguments):
                    self.refused(arguments, path)

    @unittest.skipIf(AS_ROOT or not POSIX, "permissions do not bite here")
    def test_unreadable_files(self):
        self.model.chmod(0)
        for arguments in self.commands_for(self.model)[:-1]:
            with self.subTest(arguments):
                self.refused(arguments, self.model)

    def damaged(self, good, fields):
        """Copies that must be refused: cut, and with hostile counts."""
        for size in (1, 7, 8, 9, 31, 33, 63, 64, 65, len(good) // 2, len(good) - 1):
            yield good[:size]
        for at, width in fields:
            for value in (0, 1, LARGEST, 1 << 63, 1 << 32):
                number = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
                bad = good[:at] + number + good[at + width:]
                if bad != good:
                    yield bad

    def check(self, good, fields, commands):
        """Each damaged copy goes to one of the commands in turn."""
        path = self.folder / "damaged"
        turn = itertools.cycle(commands)
        for i, bad in enumerate(self.damaged(good, fields)):
            if command_line.THIN and i % 5 != 0:
                continue
            path.write_bytes(bad)
            arguments = [path if word == "FILE" else word for word in next(turn)]
            with self.subTest(i=i, arguments=arguments):
                self.refused(arguments, path)

    def test_damaged_models(self):
        commands = self.commands_for("FILE")
        shape = [(at, 8) for at in (8, 16, 24, 32, 40, 48, 64)]
        self.check(self.model.read_bytes(), shape, commands)
        for arguments, fields in ((("--format", "mnm1"), shape[:-1] + [(56, 8), (80, 8)]),
                                  ((), [(12, 4), (16, 8), (24, 8)])):
            model = self.folder / "good.mnm"
            self.good("quantize", self.model, model, "-q", *arguments)
            self.check(model.read_bytes(), fields, commands)

    def test_damaged_weights_are_not_passed_on(self):
        """No command makes figures, or a file with a new checksum, of what its checksum disowns."""
        for kind in ("f32", "q8"):
            model = self.folder / f"{kind}.mnm"
            self.good("quantize", self.model, model, "-q", "--type", kind)
            bad = bytearray(model.read_bytes())
            bad[len(bad) // 3] ^= 64
            model.write_bytes(bad)
            for arguments in (("info", model, "--verify"),
                              ("quantize", model, self.out, "--type", kind, "-q"),
                              ("gguf", model, self.out, "--type", "f32"),
                              ("eval", model, "--data", DATA, "--rows", "1"),
                              ("eval", self.model, "--data", DATA, "--rows", "1", "--reference",
                               model),
                              ("logits", model, "--ids", "1", "--out", self.out),
                              ("bench", model, "--signature")):
                if arguments[0] == "gguf" and kind == "q8":
                    continue  # q8 is no type of GGUF
                with self.subTest(arguments):
                    said = self.refused(arguments, model)
                    self.assertIn("is damaged", said)

    def test_damaged_files_of_other_kinds(self):
        self.good("gguf", self.model, self.out)
        gguf = self.out.read_bytes()
        self.out.unlink()
        self.check(gguf, [(4, 4), (8, 8), (16, 8)], [("info", "FILE"), ("chat", "FILE")])
        # Behind the padding of the last tensor a file has ended.
        path = self.folder / "longer.gguf"
        path.write_bytes(gguf + b"\0")
        self.refused(("info", path), path)
        data = pathlib.Path(DATA).read_bytes()
        self.check(data, [(8, 8), (24, 8)],
                   [("info", "FILE"), ("eval", self.model, "--data", "FILE")])
        self.check(pathlib.Path(TOKENIZER).read_bytes(), [(at, 4) for at in (8, 12, 16, 20)],
                   [("info", "FILE"), ("tokenize", "-", "--tokenizer", "FILE"),
                    ("quantize", self.model, self.out, "--tokenizer", "FILE"),
                    ("chat", self.model, "--prompt", "x", "--tokenizer", "FILE")])

    def test_what_would_have_been_right_is_named(self):
        unknown = self.folder / "unknown"
        unknown.write_bytes(bytes(range(7, 200)))
        self.bad(1, "info", unknown, names=[unknown, "gguf", "tokenizer.bin", ".tok"])
        self.bad(1, "chat", self.model, "--tokenizer", unknown, "--prompt", "x",
                 names=[unknown, "not a tokenizer", "tokenizer.bin"])

    def test_a_tokenizer_of_another_model(self):
        data = bytearray(pathlib.Path(TOKENIZER).read_bytes())
        data[24] ^= 1  # the hash
        other = self.folder / "other.bin"
        other.write_bytes(data)
        model = self.quantized("q8")
        for arguments in [("chat", model, "--prompt", "x"), ("eval", model, "--data", DATA),
                          ("gguf", model, self.out)]:
            with self.subTest(arguments):
                self.bad(1, *arguments, "--tokenizer", other, names=[other, model, "--tokenizer"])
        stream = bytearray(pathlib.Path(DATA).read_bytes())
        stream[32] ^= 1
        path = self.folder / "other.tok"
        path.write_bytes(stream)
        self.bad(1, "eval", model, "--data", path, names=[path, "tokenizer"])

    @unittest.skipIf(not POSIX or os.environ.get("MNM_WRAPPER"), "the emulator's memory counts too")
    def test_small_files_take_little_memory(self):
        usual = peak_memory("info", self.model)[2]
        room = 24 << 10  # KiB: threads, tables and what the sanitizers hold back
        long = self.folder / "long.gguf"
        long.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"a"
                         + struct.pack("<IIQ", 9, 8, 1 << 60))
        text = self.folder / "text.gguf"
        text.write_bytes(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 40))
        context = self.folder / "context.ckpt"
        data = bytearray(self.model.read_bytes())
        data[56:64] = (1 << 24).to_bytes(8, "little")
        context.write_bytes(data)
        for path in (long, text):
            status, errors, memory = peak_memory("info", path)
            self.assertEqual(status, 1, errors)
            self.assertIn(str(path), errors)
            self.assertLess(memory, usual + room)
        # A context of 2^24 is allowed: its cache takes pages as a text fills it.
        status, errors, memory = peak_memory("chat", context, "--prompt", "x", "--max-tokens", "2")
        if status != 0:
            self.assertIn("not enough memory for a context of 16777216", errors)
        # A sanitizer keeps a book on every byte, used or not.
        program = pathlib.Path(os.environ["MNM"]).read_bytes()
        if b"__asan_init" not in program and b"__tsan_init" not in program:
            self.assertLess(memory, usual + room)


command_line.main()
