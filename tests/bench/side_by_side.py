#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mnm, llama.cpp and ik_llama.cpp in turn, on one machine, in one run.

    tests/bench/side_by_side.py MNM MODEL.mnm MODEL.gguf --peer NAME=COMMAND... [--rounds N]

Each COMMAND is a llama-bench with options of its own, or llama_cpp_bench.py (ik_llama.cpp is
fastest with "-rtr 1"). Each round runs all of them, so that a machine that slows down slows all;
the ratios are of medians.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess


def ours(arguments):
    command = [arguments.mnm, "bench", arguments.model, "--json", "--quiet", "--repeats", "1",
               "--prefill", str(arguments.prefill), "--decode", str(arguments.decode),
               "--threads", str(arguments.threads), *shlex.split(arguments.mnm_options)]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {"decode": report["decode_tokens_per_second"],
            "prefill": report["prefill_tokens_per_second"],
            "plain reads, GB/s": report["read_bandwidth_gb_s"],
            "share of them in decoding": report["bandwidth_share"],
            "dot instruction, GMAC/s": report["integer_peak_gmac_s"],
            "share of it in the prompt": report["integer_peak_share"]}


def theirs(arguments, command):
    command = [*shlex.split(command), "-m", arguments.gguf, "-p", str(arguments.prefill), "-n",
               str(arguments.decode), "-t", str(arguments.threads), "-r", "1", "-o", "json"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()
    runs = json.loads(text[text.index("["):text.rindex("]") + 1])
    return {"decode" if run["n_gen"] else "prefill": run["avg_ts"] for run in runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("mnm", "model", "gguf"):
        parser.add_argument(name)
    parser.add_argument("--peer", action="append", required=True, metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--mnm-options", default="", help="for mnm bench, such as '--kernel avx2'")
    arguments = parser.parse_args()
    peers = dict(peer.split("=", 1) for peer in arguments.peer)

    results = {name: [] for name in ("mnm", *peers)}
    for _ in range(arguments.rounds):
        results["mnm"].append(ours(arguments))
        for name, command in peers.items():
            results[name].append(theirs(arguments, command))

    def median(name, key):
        return statistics.median(run[key] for run in results[name])

    print(f"{os.path.basename(arguments.model)} and {os.path.basename(arguments.gguf)}, "
          f"{arguments.threads} threads, medians of {arguments.rounds} rounds (lowest to highest)")
    for key in ("prefill", "decode"):
        for name, runs in results.items():
            spread = f"({min(r[key] for r in runs):.0f} to {max(r[key] for r in runs):.0f})"
            ratio = "" if name == "mnm" else f"{median('mnm', key) / median(name, key):7.2f} x"
            print(f"  {key:8} {name:14} {median(name, key):9.1f} tokens/s {spread:18}{ratio}")
    for key in list(results["mnm"][0])[2:]:
        print(f"  {key}: {median('mnm', key):.3g}")


main()
