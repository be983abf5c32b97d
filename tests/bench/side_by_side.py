#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mnm and llama-bench (of llama.cpp or ik_llama.cpp) in turn, on one machine, in one run.

    tests/bench/side_by_side.py MNM LLAMA_BENCH MODEL.mnm MODEL.gguf [--rounds N] [-- OPTION...]

Options after -- go to llama-bench (ik_llama.cpp is fastest with -rtr 1). Each round runs both, so
that a machine that slows down slows both; the ratios are of medians.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


def ours(arguments, prefill, decode):
    command = [arguments.mnm, "bench", arguments.model, "--json", "--quiet", "--repeats", "1",
               "--prefill", str(prefill), "--decode", str(decode),
               "--threads", str(arguments.threads), *arguments.mnm_option]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {"decode": report["decode_tokens_per_second"],
            "prefill": report["prefill_tokens_per_second"],
            "GB/s of plain reads": report["read_bandwidth_gb_s"],
            "share of them": report["bandwidth_share"],
            "integer peak, GMAC/s": report["integer_peak_gmac_s"]}


def theirs(arguments, prefill, decode):
    command = [arguments.llama_bench, "-m", arguments.gguf, "-p", str(prefill), "-n", str(decode),
               "-t", str(arguments.threads), "-r", "1", "-o", "json", *arguments.options]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()
    runs = json.loads(text[text.index("["):text.rindex("]") + 1])
    return {"decode" if run["n_gen"] else "prefill": run["avg_ts"] for run in runs}


def main():
    own = sys.argv[1:]
    cut = own.index("--") if "--" in own else len(own)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("mnm", "llama_bench", "model", "gguf"):
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--mnm-option", action="append", default=[])
    arguments = parser.parse_args(own[:cut])
    arguments.options = own[cut + 1:]

    rounds = [(ours(arguments, arguments.prefill, arguments.decode),
               theirs(arguments, arguments.prefill, arguments.decode))
              for _ in range(arguments.rounds)]

    def values(side, key):
        return [round_[side][key] for round_ in rounds]

    print(f"{arguments.model} and {arguments.gguf}, {arguments.threads} threads, "
          f"medians of {arguments.rounds} rounds (lowest to highest)")
    for key in ("prefill", "decode"):
        medians = [statistics.median(values(side, key)) for side in (0, 1)]
        spreads = [f"{min(values(side, key)):.0f} to {max(values(side, key)):.0f}"
                   for side in (0, 1)]
        print(f"  {key:8} mnm {medians[0]:8.1f} ({spreads[0]})   "
              f"llama-bench {medians[1]:8.1f} ({spreads[1]})   {medians[0] / medians[1]:.2f} x")
    for key in ("GB/s of plain reads", "share of them", "integer peak, GMAC/s"):
        print(f"  {key}: {statistics.median(values(0, key)):.3g}")


main()
