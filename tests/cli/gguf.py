# SPDX-License-Identifier: MIT
"""mnm gguf: what is written and what is said about the pre-tokenizer."""
import pathlib
import shutil
import struct

import command_line
from command_line import CHECKPOINT, MODELS


class Gguf(command_line.Case):
    def test_read_back(self):
        for kind in ("f32", "f16", "q8_0", "q4_0"):
            out = self.folder / f"{kind}.gguf"
            report = self.json("gguf", CHECKPOINT, out, "--type", kind, "--name", "tales")
            self.assertEqual(report["bytes"], out.stat().st_size)
            info = self.json("info", out)
            shape = [info[key] for key in ("format", "type", "layers", "width", "heads", "kv_heads",
                                           "head_dim", "ffn", "vocab", "context", "parameters")]
            self.assertEqual(shape, ["gguf", kind, 4, 192, 3, 1, 64, 512, 2048, 256, 1967808])
            self.assertEqual((info["name"], info["pre"]), ("tales", "llama-bpe"))
            self.assertIn("message", info["chat_template"])
            self.assertEqual(len(info["tensors"]), 2 + 9 * 4)

    def test_from_f32_model(self):
        one, two = self.folder / "one.gguf", self.folder / "two.gguf"
        self.good("gguf", CHECKPOINT, one, "--name", "x")
        self.good("gguf", self.quantized("f32"), two, "--name", "x")
        self.assertEqual(one.read_bytes(), two.read_bytes())
        self.bad(1, "gguf", self.quantized("q8"), two, names=["q8"])

    def test_no_input_is_overwritten(self):
        sample = self.folder / "sample.txt"
        sample.write_text("some words")
        folder = self.folder / "trained"
        folder.mkdir()
        for name in ("tales-chat.ckpt", "tokenizer.bin"):
            shutil.copy(MODELS / name, folder / name)
        tokenizer = folder / "tokenizer.bin"
        before = tokenizer.read_bytes()
        model = folder / "tales-chat.ckpt"
        self.bad(1, "gguf", model, sample, "--sample", sample, names=["also an input"])
        self.bad(1, "gguf", model, tokenizer, names=["also an input"])
        self.bad(1, "quantize", model, tokenizer, names=["also an input"])
        self.bad(1, "logits", model, "--ids", "1", "--out", tokenizer, names=["also an input"])
        self.assertEqual(tokenizer.read_bytes(), before)
        self.assertEqual(sample.read_text(), "some words")

    def test_f16_overflow_is_refused(self):
        data = bytearray(pathlib.Path(CHECKPOINT).read_bytes())
        data[4096 + 16:4096 + 20] = struct.pack("<f", 1e30)
        model = self.folder / "huge.ckpt"
        model.write_bytes(data)
        shutil.copy(MODELS / "tokenizer.bin", self.folder / "tokenizer.bin")
        for kind in ("f16", "q8_0", "q4_0"):
            self.bad(1, "gguf", model, self.folder / "out.gguf", "--type", kind,
                     names=["token_embd.weight", "row 0", kind])
        self.good("gguf", model, self.folder / "out.gguf", "--type", "f32")

    def test_no_fit(self):
        one, two = self.folder / "one.gguf", self.folder / "two.gguf"
        self.good("gguf", CHECKPOINT, one, "--type", "q4_0")
        self.good("gguf", CHECKPOINT, two, "--type", "q4_0", "--no-fit", "--name", "one")
        self.assertNotEqual(one.read_bytes(), two.read_bytes())

    def test_pretokenizers_are_compared(self):
        sample = self.folder / "sample.txt"
        sample.write_text("1 12 123 1234 12345 words don't\n\n\n")
        out = self.folder / "out.gguf"
        found = self.json("gguf", CHECKPOINT, out, "--sample", sample)["pretokenizers"]
        self.assertEqual(list(found)[0], "llama-bpe")
        # 123, 1234 and 12345 against 12|3, 12|34 and 12|34|5.
        self.assertEqual(found["llama-bpe"]["numbers"], 3)
        self.assertEqual(found["llama-bpe"]["others"], 0)
        self.assertEqual(found["llama-bpe"]["first"], "123")
        # One digit at a time: 12 differs too.
        self.assertEqual(found["bailingmoe"]["places"], 6)
        sample.write_text("no digits, only words.\n")
        found = self.json("gguf", CHECKPOINT, out, "--pre", "bailingmoe", "--sample", sample)
        self.assertEqual(found["pre"], "bailingmoe")
        self.assertEqual(found["pretokenizers"]["bailingmoe"]["places"], 0)
        text = self.good("gguf", CHECKPOINT, out).decode()
        self.assertIn("numbers of three or more digits", text)

    def test_needs_a_tokenizer(self):
        alone = self.folder / "alone.ckpt"
        shutil.copy(CHECKPOINT, alone)
        self.bad(1, "gguf", alone, self.folder / "o.gguf", names=["--tokenizer", "tokenizer.bin"])
        self.assertEqual(self.leftovers(), ["alone.ckpt"])


command_line.main()
