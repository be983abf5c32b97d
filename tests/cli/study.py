# SPDX-License-Identifier: MIT
"""mnm eval --study: its figures against other commands, its page, and what it refuses."""
import html.parser
import json
import math
import os
import pathlib
import unittest

import command_line
from command_line import CHECKPOINT, DATA, POSIX, TOKENIZER

ROWS = ("--data", DATA, "--rows", "1")
STUDY = ("eval", CHECKPOINT, *ROWS, "--study")
VOID = {"meta", "br"}


class Page(html.parser.HTMLParser):
    """Checks that tags are balanced, and collects what a test asks for."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.texts = [], {}, set(), [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        values = dict(attributes)
        self.ids.add(values.get("id"))
        self.links += [v for k, v in attributes if k in ("href", "src", "srcset", "data", "action")]
        self.links += [k for k, _ in attributes if k.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)


class Study(command_line.Case):
    @classmethod
    def setUpClass(cls):
        """One run that most tests look at."""
        if command_line.EMULATED or command_line.THREAD_SANITIZER:
            raise unittest.SkipTest("each study would take minutes here")
        super().setUpClass()
        cls.result = cls.run_once()

    @staticmethod
    def run_once():
        done = command_line.mnm(*STUDY, "--bits", "3-5, 8", "--bandwidth", "100", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def point(self, curve, name):
        points = next(c for c in self.result["curves"] if c["name"] == curve)["points"]
        return next(p for p in points if p["name"] == name)

    def test_stored_types_agree_with_the_written_files(self):
        """The study encodes in memory; quantize and eval go through files."""
        for name, kind, flags in (("q8", "q8", ()), ("q4", "q4", ()),
                                  ("q4 --no-fit", "q4", ("--no-fit",))):
            path = self.quantized(kind, *flags)
            plain = self.json("eval", path, *ROWS, "--reference", CHECKPOINT)
            point = self.point("stored types", name)
            self.assertAlmostEqual(point["kl_bits"], plain["kl_bits"]["mean"], delta=1e-12)
            self.assertAlmostEqual(point["loss_nats"], plain["loss_nats"], delta=1e-12)
            self.assertEqual(point["top1_agreement"], plain["top1_agreement"])
            stored = self.json("info", path)["bits_per_weight"]
            self.assertAlmostEqual(point["bits_per_weight"], stored, delta=1e-9)
            total = point["description_bits"]
            self.assertAlmostEqual(total["weights"], stored * 1967808, delta=1)
            corpus = self.result["targets"] * point["loss_nats"] / math.log(2)
            self.assertAlmostEqual(total["corpus"], corpus, delta=1e-6)
            path.unlink()
        f32 = self.point("stored types", "f32")
        self.assertEqual(f32["loss_nats"], self.json("eval", CHECKPOINT, *ROWS)["loss_nats"])
        self.assertLess(abs(f32["kl_bits"]), 1e-9)

    def test_curves(self):
        curves = {c["name"]: c for c in self.result["curves"]}
        self.assertEqual(list(curves), ["per tensor", "per row", "per column", "group of 32",
                                        "group of 16", "stored types"])
        rule = self.result["knee_rule"]
        for curve in curves.values():
            points = sorted(curve["points"], key=lambda p: (p["bits_per_weight"], p["kl_bits"]))
            floor = max(min(p["kl_bits"] for p in points), rule["least_floor_kl_bits"])
            knee = next(p for p in points if p["kl_bits"] <= rule["factor"] * floor)
            self.assertEqual(curve["knee"]["point"], knee["name"])
        for name in list(curves)[:5]:
            kl = [p["kl_bits"] for p in curves[name]["points"]]
            self.assertEqual(kl, sorted(kl, reverse=True))
            self.assertEqual([p["bits"] for p in curves[name]["points"]], [3, 4, 5, 8])
        # Finer scales lose less at the same bits; 32 bits a scale are counted.
        at = {name: self.point(name, f"4 bits {name}") for name in list(curves)[:5]}
        self.assertGreater(at["per tensor"]["kl_bits"], at["per row"]["kl_bits"])
        self.assertGreater(at["per row"]["kl_bits"], at["group of 32"]["kl_bits"])
        self.assertAlmostEqual(at["group of 32"]["bits_per_weight"],
                               self.point("stored types", "q4")["bits_per_weight"], delta=1e-9)

    def test_quantisers(self):
        matrices = {m["name"]: m for m in self.result["matrices"]}
        self.assertEqual(len(matrices), 29)
        self.assertEqual(sum(m["rows"] * m["cols"] for m in matrices.values()) + 9 * 192, 1967808)
        for m in matrices.values():
            self.assertAlmostEqual(m["crest"], m["max"] / m["rms"])
            for bits, line, snr in zip(self.result["bits"], m["model_line_db"],
                                       m["snr_db"]["per tensor"]):
                self.assertAlmostEqual(line, 6.02 * bits + 4.77 - 20 * math.log10(m["crest"]))
                if bits == 8:
                    self.assertLess(abs(line - snr), 1)
        errors = self.result["errors_in_steps"][0]
        self.assertEqual(errors["count"], 1967808 - 9 * 192)
        self.assertEqual(sum(errors["histogram"]), errors["count"])
        self.assertLess(abs(errors["twelve_mean_square"] - 1), 0.01)
        self.assertLessEqual(errors["max"], 0.5 + 1e-6)
        grids = {(g["grid"], g["rounding"], g["overflow"]): g for g in self.result["grids"]}
        self.assertEqual(len(grids), 20)
        nearest, floor = (grids["Q0.7", r, "saturate"]["snr_db"] for r in ("nearest", "floor"))
        self.assertAlmostEqual(nearest - floor, 6.02, delta=0.3)

    def test_activations(self):
        found = self.result["activations"]
        sites = {s["site"]: s for s in found["sites"]}
        self.assertEqual(len(sites), 4 * 5 + 2)
        for site in sites.values():
            self.assertAlmostEqual(max(site["channel_max"]), site["max"])
            for name in ("per tensor", "per token", "group of 32"):
                self.assertEqual(site["snr_db"][name], sorted(site["snr_db"][name]))
            self.assertGreater(site["snr_db"]["group of 32"][0], site["snr_db"]["per tensor"][0])
            for outlier in site["outlier_channels"]:
                self.assertGreater(outlier["max"], 6 * site["channel_max_median"])
        kl = {t["name"]: t["kl_bits"] for t in found["trials"]}
        whole = self.point("group of 32", "4 bits group of 32")
        self.assertAlmostEqual(kl["W4A16"], whole["kl_bits"])
        self.assertLess(kl["W4A16"], kl["W4A4, inputs per token"])
        self.assertLess(kl["W16A8, inputs per token"], kl["W16A4, inputs per token"])
        self.assertGreater(kl["logits at 4 bits, per tensor"], 0.01)
        caches = {t["name"]: t["kl_bits"] for t in self.result["caches"]}
        self.assertLess(0, caches["q8 cache"])
        self.assertLess(caches["q8 cache"], caches["q4 cache"])

    def test_overflow_memory_and_sensitivity(self):
        stale = self.result["stale_scale"]
        self.assertEqual(stale["matrix"], "token_embd.weight")
        for saturate, wrap in zip(stale["trials"][::2], stale["trials"][1::2]):
            self.assertEqual((saturate["overflow"], wrap["overflow"]), ("saturate", "wrap"))
            self.assertGreater(wrap["kl_bits"], saturate["kl_bits"])
            self.assertGreater(saturate["overflows"], 0)
        memory = self.result["memory"]
        self.assertEqual(memory["other_bandwidth_gb_s"], 100)
        case = memory["cases"][0]
        self.assertEqual(case["cache_bytes_per_token"], 2 * 4 * 64 * 4)
        at = memory["contexts"].index(256)
        self.assertAlmostEqual(case["other_bound_tokens_per_second"][at],
                               100e9 / (case["weight_bytes"] + 256 * 2048), delta=1e-3)
        sensitivity = self.result["sensitivity"]
        self.assertEqual(len(sensitivity["matrices"]), 29)
        self.assertTrue(-1 <= sensitivity["crest_correlation"] <= 1)
        for folding in self.result["foldings"]:
            self.assertLess(abs(folding["exact_kl_bits"]), 1e-6)
        plain = self.result["foldings"][0]
        whole = self.point("per row", "4 bits per row")
        self.assertAlmostEqual(plain["weights_kl_bits"], whole["kl_bits"])

    def test_page(self):
        self.check_page("a <b> & 'c'.html" if POSIX else "a & 'c'.html")

    def check_page(self, file_name):
        name = self.folder / file_name
        text = self.good(*STUDY, "--bits", "3,4,8", "--report", name).decode()
        self.assertIn("knee", text)
        self.assertEqual(self.leftovers(), [name.name])
        page = name.read_text(encoding="utf-8")
        found = Page(page)
        for part in ("rate", "quantizers", "activations", "stale", "memory", "sensitivity"):
            self.assertIn(part, found.ids)
        self.assertGreaterEqual(found.tags["table"], 15)
        self.assertEqual(page.count("role=\"img\""), 7)
        self.assertIn("class=\"knee\"", page)
        self.assertTrue(all(link.startswith("#") for link in found.links), found.links)
        for word in ("<script", "http:", "https:", "url(", "@import", "<b>"):
            self.assertNotIn(word, page)
        for word in ("prefers-color-scheme: dark", "@media print", "width=device-width"):
            self.assertIn(word, page)
        words = "".join(found.texts)
        self.assertIn("--bits 3,4,8 --report '", words)
        self.assertIn(file_name.replace("'", "'\\''"), words)
        self.assertNotIn("nan", page)

    def test_one_width_and_a_quantised_model(self):
        model = self.quantized("q4")
        result = self.json("eval", model, *ROWS, "--study", "--bits", "6", "--grids", "Q3.4",
                           "--matrix", "blk.1.ffn_up.weight")
        self.assertEqual((result["bits"], result["main_bits"]), ([6], 6))
        self.assertEqual([c["knee"] for c in result["curves"][:5]], [None] * 5)
        self.assertEqual([g["grid"] for g in result["grids"]], ["Q3.4"] * 4)
        self.assertEqual(result["stale_scale"]["matrix"], "blk.1.ffn_up.weight")
        self.assertIn("quantised already", result["notes"][0])
        q4 = next(p for p in result["curves"][-1]["points"] if p["name"] == "q4 --no-fit")
        self.assertLess(q4["kl_bits"], 0.1)

    def test_refused(self):
        for flags in (("--report", "o.html"), ("--bits", "4"), ("--grids", "Q0.7"),
                      ("--matrix", "x"), ("--bandwidth", "5")):
            self.bad(2, "eval", CHECKPOINT, *ROWS, *flags, names=["--study"])
        self.bad(2, *STUDY, "--reference", CHECKPOINT, names=["--reference"])
        for bits in ("1", "9", "4-", "-4", "8-2", "4,,5", "x", "2-4-6", "4 5"):
            self.bad(2, *STUDY, "--bits", bits, names=["2-8"])
        for grid in ("0.7", "Q", "Q1", "Q1.x", "Q0.0", "Q20.20", "Q-1.5", "Q1.2.3"):
            self.bad(2, *STUDY, "--grids", grid, names=["Q1.6"])
        for value in ("0", "-1", "nan", "inf", "fast"):
            self.bad(2, *STUDY, "--bandwidth", value)
        self.bad(1, *STUDY, "--matrix", "blk.0.nothing",
                 names=["blk.0.nothing", "blk.0.attn_q.weight"])
        missing = self.folder / "missing" / "o.html"
        self.bad(1, *STUDY, "--report", missing, names=[missing])
        self.bad(2, *STUDY, "--report", "", names=["--report", "empty"])
        self.assertEqual(self.leftovers(), [])

    @unittest.skipUnless(POSIX and os.path.exists("/dev/full"), "there is no /dev/full here")
    def test_a_report_that_cannot_be_written_leaves_the_figures(self):
        done = command_line.mnm(*STUDY, "--bits", "4", "--json", "--report", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left", done.stderr)
        self.assertEqual(json.loads(done.stdout)["bits"], [4])

    def test_inputs_are_kept(self):
        model = self.quantized("q8")
        before = model.read_bytes()
        self.bad(1, "eval", model, *ROWS, "--study", "--report", model, names=["also an input"])
        self.assertEqual(model.read_bytes(), before)
        self.bad(1, *STUDY, "--report", DATA, names=["also an input"])
        self.bad(1, *STUDY, "--report", TOKENIZER, names=["also an input"])
        if POSIX:
            link = self.folder / "link.html"
            os.symlink(DATA, link)
            self.bad(1, *STUDY, "--report", link, names=["also an input"])
            link.unlink()
        self.assertEqual(self.leftovers(), ["q8.mnm"])
        # A run that fails leaves an earlier page as it was.
        page = self.folder / "old.html"
        page.write_text("old")
        self.bad(1, *STUDY, "--matrix", "nothing", "--report", page)
        self.assertEqual(page.read_text(), "old")

    def test_weights_that_are_no_numbers(self):
        damaged = self.folder / "damaged.ckpt"
        data = bytearray(pathlib.Path(CHECKPOINT).read_bytes())
        data[4096 + 4 * 192 * 7:4096 + 4 * 192 * 7 + 4] = b"\x00\x00\xc0\x7f"
        damaged.write_bytes(data)
        self.bad(1, "eval", damaged, *ROWS, "--tokenizer", TOKENIZER, "--study",
                 names=["token_embd.weight row 7", "not finite"])


command_line.main()
