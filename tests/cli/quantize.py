# SPDX-License-Identifier: MIT
"""mnm quantize: the report, the file, and what must not be overwritten."""
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import unittest

import command_line
from command_line import AS_ROOT, CHECKPOINT, MNM, POSIX, TOKENIZER


class Quantize(command_line.Case):
    def test_report(self):
        out = self.folder / "q8.mnm"
        report = self.json("quantize", CHECKPOINT, out)
        self.assertEqual(report["parameters"], 1967808)
        self.assertEqual(report["bytes"], out.stat().st_size)
        real = out.stat().st_size * 8 / report["parameters"]
        self.assertAlmostEqual(report["bits_per_weight"], real, places=6)
        self.assertGreater(report["seconds"], 0)
        types = {tensor["name"]: tensor["type"] for tensor in report["tensors"]}
        self.assertEqual(types["blk.0.attn_qkv.weight"], "q8")
        self.assertEqual(types["blk.3.ffn_norm.weight"], "f32")
        text = self.good("quantize", CHECKPOINT, out).decode()
        self.assertIn("stored as f32: blk.*.attn_norm.weight (4 tensors)", text)
        self.assertIn("8 bits per weight nominal", text)

    def test_info_of_every_type(self):
        for kind in ("f32", "q8", "q4"):
            info = self.json("info", self.quantized(kind), "--verify")
            self.assertEqual((info["format"], info["type"]), ("mnm2", kind))
            keys = "layers width heads kv_heads head_dim ffn vocab context parameters"
            shape = [info[key] for key in keys.split()]
            self.assertEqual(shape, [4, 192, 3, 1, 64, 512, 2048, 256, 1967808])
            self.assertTrue(info["tokenizer"])
            self.assertEqual(info["sampling"]["top_k"], 64)

    def test_repeats_exactly(self):
        first = self.quantized("q4", "--threads", "1").read_bytes()
        second = self.quantized("q4", "--threads", "3").read_bytes()
        self.assertEqual(first, second)
        self.assertNotEqual(first, self.quantized("q4", "--no-fit").read_bytes())

    def test_rope_base(self):
        info = self.json("info", self.quantized("q8", "--rope-base", "5000"))
        self.assertEqual(info["rope_base"], 5000)

    def test_flags_without_effect_or_against_the_file_are_noted(self):
        out = self.folder / "out.mnm"
        for flags, words in [(("--rope-base", "5000"), b"5000 instead of the input's 10000"),
                             (("--no-fit",), b"--no-fit changes nothing for q8")]:
            done = command_line.mnm("quantize", CHECKPOINT, out, *flags)
            self.assertEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        done = command_line.mnm("quantize", CHECKPOINT, out, "--type", "q4", "--no-fit")
        self.assertNotIn(b"note", done.stderr)
        done = command_line.mnm("gguf", CHECKPOINT, out, "--type", "f16", "--no-fit")
        self.assertIn(b"--no-fit changes nothing for f16", done.stderr)

    @unittest.skipUnless(POSIX, "no /dev/stdout there")
    def test_a_pipe_gets_the_model_and_nothing_else(self):
        want = self.quantized("q8").read_bytes()
        for flags in ((), ("--json",), ("-q",)):
            self.assertEqual(self.good("quantize", CHECKPOINT, "/dev/stdout", *flags), want)
        out = self.folder / "out.gguf"
        self.good("gguf", CHECKPOINT, out)
        self.assertEqual(len(self.good("gguf", CHECKPOINT, "/dev/stdout")), out.stat().st_size)
        logits = self.good("logits", CHECKPOINT, "--ids", "1,2", "--out", "/dev/stdout", "--json")
        self.assertEqual(len(logits) % 4, 0)
        self.assertTrue(logits.startswith(b"\x93NUMPY"))

    def test_a_tokenizer_that_only_claims_to_be_the_same(self):
        model = self.quantized("q8")
        damaged = bytearray(pathlib.Path(TOKENIZER).read_bytes())
        damaged[32:36], damaged[36:40] = damaged[36:40], damaged[32:36]
        other = self.folder / "tokenizer.bin"
        other.write_bytes(damaged)
        self.bad(1, "chat", model, "--prompt", "x", "--tokenizer", other, names=[other, model])
        self.bad(1, "quantize", model, self.folder / "new.mnm", "--tokenizer", other,
                 names=["damaged"])

    def test_no_tokenizer(self):
        alone = self.folder / "alone.ckpt"
        shutil.copy(CHECKPOINT, alone)
        out = self.folder / "out.mnm"
        done = command_line.mnm("quantize", alone, out)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"note: no tokenizer", done.stderr)
        self.bad(1, "chat", out, "--prompt", "x", names=["--tokenizer", "tokenizer.bin"])
        self.good("chat", out, "--prompt", "x", "--tokenizer", TOKENIZER, "--max-tokens", "2")
        self.assertEqual(command_line.mnm("quantize", alone, out, "--quiet").stderr, b"")

    def test_wrong_tokenizer(self):
        data = bytearray(pathlib.Path(TOKENIZER).read_bytes())
        vocab, merges, first, specials = struct.unpack_from("<4I", data, 8)
        struct.pack_into("<4I", data, 8, vocab + 8, merges, first + 8, specials)
        other = self.folder / "tokenizer.bin"
        other.write_bytes(data)
        self.bad(1, "quantize", CHECKPOINT, self.folder / "o.mnm", "--tokenizer", other,
                 names=[2056, 2048])
        self.assertEqual(self.leftovers(), ["tokenizer.bin"])

    @unittest.skipUnless(POSIX, "names are UTF-16 there")
    def test_a_name_that_is_not_utf8(self):
        odd = os.fsencode(self.folder) + b"/odd\xff\x1b.ckpt"
        shutil.copy(CHECKPOINT, odd)
        out = self.folder / "out"
        for command in ("quantize", "gguf"):
            done = subprocess.run([*MNM, command, odd, out, "--tokenizer", TOKENIZER],
                                  stdout=subprocess.PIPE, check=True)
            done.stdout.decode()
            self.assertIn("odd\ufffd", str(self.json("info", out)))

    def test_requantizing_is_refused(self):
        self.bad(1, "quantize", self.quantized("q4"), self.folder / "again.mnm", names=["q4"])

    def test_output_equal_to_input(self):
        source = self.folder / "in.ckpt"
        shutil.copy(CHECKPOINT, source)
        symbolic, hard = self.folder / "symbolic", self.folder / "hard"
        symbolic.symlink_to(source)
        os.link(source, hard)
        for out in (source, symbolic, hard, self.folder / ".." / self.folder.name / "in.ckpt"):
            self.bad(1, "quantize", source, out, "-q", names=[out])
        self.assertEqual(source.read_bytes(), pathlib.Path(CHECKPOINT).read_bytes())

    def test_bad_targets(self):
        self.bad(1, "quantize", CHECKPOINT, self.folder / "missing" / "o.mnm", names=["missing"])
        self.bad(1, "quantize", CHECKPOINT, self.folder, names=[self.folder])
        if not AS_ROOT:
            self.folder.chmod(0o500)
            self.bad(1, "quantize", CHECKPOINT, self.folder / "o.mnm", names=["o.mnm"])
            self.folder.chmod(0o700)
        if os.path.exists("/dev/full") and POSIX:
            self.bad(1, "quantize", CHECKPOINT, "/dev/full", names=["/dev/full"])
        self.assertEqual(self.leftovers(), [])

    def test_a_weight_that_is_no_number(self):
        data = bytearray(pathlib.Path(CHECKPOINT).read_bytes())
        struct.pack_into("<f", data, 4096 + 4 * 192 * 2, float("nan"))
        broken = self.folder / "in.ckpt"
        broken.write_bytes(data)
        old = self.folder / "old.mnm"
        old.write_text("old")
        self.bad(1, "quantize", broken, old, "-q", names=["token_embd.weight", "row 2"])
        self.assertEqual(old.read_text(), "old")

    @unittest.skipUnless(POSIX, "a process cannot be asked to end there, only be ended")
    def test_a_signal_leaves_nothing(self):
        # Before, while or after the file is written: nothing but it is left.
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for delay in (0.002, 0.01, 0.02):
                out = self.folder / "out.mnm"
                command = [*MNM, "quantize", CHECKPOINT, out, "--type", "q4", "-q"]
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                time.sleep(delay)
                process.send_signal(number)
                self.assertIn(process.wait(60), (0, status, -number))
                self.assertIn(self.leftovers(), ([], ["out.mnm"]))
                out.unlink(missing_ok=True)


command_line.main()
