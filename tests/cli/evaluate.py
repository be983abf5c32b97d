# SPDX-License-Identifier: MIT
"""mnm eval, logits, tokenize, info and bench: keys, figures, and the same bits everywhere."""
import pathlib
import struct
import subprocess
import unittest

import command_line
from command_line import CHECKPOINT, DATA, THIN, TOKENIZER

ROWS = ["--rows", 1] if THIN else []


def read_npy(path):
    data = path.read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    length = struct.unpack_from("<H", data, 8)[0]
    assert (10 + length) % 64 == 0
    header = eval(data[10:10 + length], {})
    assert header["descr"] == "<f4" and not header["fortran_order"]
    rows, cols = header["shape"]
    assert len(data) == 10 + length + 4 * rows * cols
    return rows, cols, data[10 + length:]


class Evaluate(command_line.Case):
    @unittest.skipIf(THIN, "the whole text; tests/cli/signature.py stands for it")
    def test_shipped_model(self):
        result = self.json("eval", CHECKPOINT, "--data", DATA)
        # The trainer's own figure, from the checkpoint's header.
        trained = struct.unpack_from("<d", pathlib.Path(CHECKPOINT).read_bytes(), 112)[0]
        self.assertAlmostEqual(result["loss_nats"], trained, delta=1e-5)
        self.assertEqual(result["targets"], 3134)
        self.assertEqual(len(result["rows_loss_nats"]), 24)
        self.assertGreater(result["bits_per_byte"], 0)
        self.assertGreater(result["tokens_per_second"], 0)
        self.assertGreater(result["perplexity"], 1)

    def test_against_a_reference(self):
        same = self.json("eval", CHECKPOINT, "--data", DATA, "--reference", CHECKPOINT, *ROWS)
        self.assertLess(abs(same["kl_bits"]["mean"]), 1e-6)
        self.assertLess(same["kl_bits"]["max"], 1e-6)
        self.assertEqual(same["top1_agreement"], 1)
        kinds = {"q8": self.quantized("q8"), "fitted": self.quantized("q4")}
        kinds["fitted"] = kinds["fitted"].rename(self.folder / "fitted.mnm")
        kinds["plain"] = self.quantized("q4", "--no-fit")
        results = {kind: self.json("eval", path, "--data", DATA, "--reference", CHECKPOINT, *ROWS)
                   for kind, path in kinds.items()}
        self.assertLess(abs(results["q8"]["loss_nats"] - same["loss_nats"]), 0.005)
        if THIN:
            return
        self.assertLess(results["fitted"]["loss_nats"], results["plain"]["loss_nats"])
        self.assertLess(results["fitted"]["kl_bits"]["mean"], results["plain"]["kl_bits"]["mean"])
        text = self.good("eval", kinds["q8"], "--data", DATA, "--reference", CHECKPOINT,
                         *ROWS).decode()
        for word in ("perplexity", "bits per byte", "KL divergence", "top-1", "rows of up to 256"):
            self.assertIn(word, text)

    def test_smaller_caches(self):
        model = self.quantized("q8")
        flags = ("--data", DATA, "--reference", model, "--rows", 1)
        kl = {cache: self.json("eval", model, *flags, "--cache", cache)["kl_bits"]["mean"]
              for cache in ("f32", "f16", "q8")}
        self.assertLess(abs(kl["f32"]), 1e-6)
        self.assertLess(kl["f16"], 1e-3)
        self.assertLess(kl["f16"], kl["q8"])
        self.assertLess(kl["q8"], 0.01)
        self.bad(2, "eval", model, "--data", DATA, "--cache", "f32", "--study")
        self.bad(2, "eval", model, "--data", DATA, "--cache", "q4")

    def test_text(self):
        text = self.folder / "text.txt"
        text.write_text("Once upon a time there was a king who had three sons. " * 50)
        result = self.json("eval", CHECKPOINT, "--data", text, "--rows", "2")
        self.assertEqual((result["rows"], result["window"]), (2, 256))
        self.assertLess(result["bits_per_byte"], 3)
        text.write_text("")
        self.bad(1, "eval", CHECKPOINT, "--data", text, names=[text])
        self.bad(1, "eval", CHECKPOINT, "--data", CHECKPOINT,
                 names=["is no text", "it is a model (ckpt)"])

    def test_packed_rows(self):
        # Rows of 32 tokens, in place of the context: each alone gives the same loss.
        data = pathlib.Path(DATA).read_bytes()
        tokens, block, rows = data[64:], 32, 5

        def stream(path, tokens, block):
            header = data[:8] + struct.pack("<Q", len(tokens) // 2) + data[16:48]
            path.write_bytes(header + struct.pack("<QQ", block, 0) + tokens)
            return path

        packed = stream(self.folder / "packed.tok", tokens[:2 * (rows * block + 1)], block)
        self.assertEqual(self.json("info", packed)["block"], block)
        found = self.json("eval", CHECKPOINT, "--data", packed)
        self.assertEqual((found["rows"], found["window"]), (rows, block))
        losses = []
        for row in range(rows):
            part = tokens[2 * row * block:2 * ((row + 1) * block + 1)]
            if not any(part[i] & 0x80 for i in range(3, len(part), 2)):
                losses.append(0)  # no target in it
                continue
            one = stream(self.folder / "one.tok", part, 0)
            losses.append(self.json("eval", CHECKPOINT, "--data", one)["loss_nats"])
        self.assertGreater(max(losses), 0)
        for ours, alone in zip(found["rows_loss_nats"], losses):
            self.assertAlmostEqual(ours, alone, places=9)
        stream(packed, tokens, 257)
        self.bad(1, "eval", CHECKPOINT, "--data", packed, names=[packed, 257, 256])

    def test_binary_data_is_no_text(self):
        model = self.quantized("q8")
        self.bad(1, "eval", model, "--data", CHECKPOINT, names=["no text"])
        text = self.bad(1, "eval", model, "--data", TOKENIZER, names=["no text", "a tokenizer"])
        self.assertNotIn("expected a model", text)

    def test_verify_says_what_it_verified(self):
        found = self.json("info", self.quantized("q8"), "--verify")
        self.assertEqual(found["tensors_verified"], len(found["tensors"]))
        gguf = self.folder / "o.gguf"
        self.good("gguf", CHECKPOINT, gguf, "-q")
        for file in (CHECKPOINT, gguf, TOKENIZER, DATA):
            self.assertIn(b"\nverified         nothing: this format has no checksums\n",
                          self.good("info", file, "--verify"))
            self.assertEqual(self.json("info", file, "--verify")["tensors_verified"], 0)
            self.assertNotIn("tensors_verified", self.json("info", file))

    def test_logits(self):
        out = self.folder / "logits.npy"
        self.good("logits", CHECKPOINT, "--ids", "2032,2033,1665", "--out", out)
        rows, cols, data = read_npy(out)
        self.assertEqual((rows, cols), (3, 2048))
        self.good("logits", CHECKPOINT, "--ids", "2032", "--out", out, "--kernel", "ref")
        self.assertEqual(read_npy(out)[2], data[:4 * 2048])
        self.bad(1, "logits", CHECKPOINT, "--ids", "1,2048", "--out", out, names=[2048])
        self.bad(1, "logits", CHECKPOINT, "--ids", ",".join("1" * 257), "--out", out, names=[256])
        self.assertEqual(read_npy(out)[0], 1)

    def test_tokenize(self):
        text = "Caf\u00e9 \u6f22\U0001F600 12345\r\n\x00<|end|>".encode() + b"\xff\xfe\n"
        result = self.json("tokenize", "-", "--tokenizer", TOKENIZER, stdin=text)
        self.assertEqual(result["bytes"], len(text))
        self.assertEqual(result["count"], len(result["ids"]))
        self.assertLess(max(result["ids"]), 2032)
        ids = self.good("tokenize", "-", "--tokenizer", TOKENIZER, "--ids", stdin=text)
        self.assertEqual([int(i) for i in ids.split(b",")], result["ids"])
        inside = self.json("tokenize", "-", "--tokenizer", self.quantized("q8"), stdin=text)
        self.assertEqual(inside, result)

    def test_info(self):
        for path, kind in ((CHECKPOINT, "ckpt"), (DATA, "tok"), (TOKENIZER, "tokenizer")):
            self.assertEqual(self.json("info", path)["format"], kind)
            self.assertIn(kind.encode(), self.good("info", path))
        self.assertEqual(self.json("info", DATA)["targets"], 3134)

    def test_bench(self):
        result = self.json("bench", self.quantized("q8"), "--prefill", "16", "--decode", "8")
        keys = ("decode_tokens_per_second", "prefill_tokens_per_second", "bytes_per_token",
                "read_bandwidth_gb_s", "bandwidth_share", "load_ms", "threads")
        for key in keys:
            self.assertGreater(result[key], 0, key)
        self.assertIsInstance(result["kernel"], str)
        self.assertEqual((result["prefill_tokens"], result["decode_tokens"]), (16, 8))

    def test_bench_at_depth(self):
        model = self.quantized("q8")
        flags = ("--prefill", "16", "--decode", "8", "--repeats", "1")
        result = self.json("bench", model, *flags, "--depth", "100", "--cache", "f16", "--profile")
        phases = ["qkv", "attention", "output", "gate_up", "down", "head", "other"]
        for run in ("decode", "prefill"):
            parts = result[f"{run}_phases"]
            self.assertEqual(list(parts), phases)
            self.assertAlmostEqual(sum(part["share"] for part in parts.values()), 1)
            work, share, limit = {
                "decode": ("gb_s", "bandwidth_share", "read_bandwidth_gb_s"),
                "prefill": ("gmac_s", "integer_peak_share", "integer_peak_gmac_s")}[run]
            down = parts["down"]
            self.assertAlmostEqual(down[share], down[work] / result[limit])
            times = {name: part["us_per_token"] for name, part in parts.items()}
            # Parts of a token's time, of which nothing is counted twice.
            whole = 1e6 / result[f"{run}_tokens_per_second"]
            self.assertLessEqual(sum(times.values()), 1.0001 * whole)
            self.assertGreater(min(times.values()), 0)
        full = self.json("bench", model, *flags, "--depth", "100")
        self.assertEqual(result["cache_bytes_per_token"] * 2, full["cache_bytes_per_token"])
        self.bad(1, "bench", model, "--depth", "256", names=("256",))
        for flags in (["--depth", "10"], ["--profile"]):
            self.bad(2, "bench", model, "--signature", *flags)

    def test_output_that_fails(self):
        with open("/dev/full", "wb") as full:
            done = command_line.mnm("info", CHECKPOINT, stdout=full)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"No space left", done.stderr)
        # A reader that goes away ends a long listing quietly.
        text = self.folder / "long.txt"
        text.write_text("words and words " * 50000)
        command = [*command_line.MNM, "tokenize", str(text), "--tokenizer", TOKENIZER]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        with process.stderr as stream:
            self.assertEqual(stream.read(), b"")
        self.assertEqual(process.wait(60), 0)


command_line.main()
