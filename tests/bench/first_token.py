#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time from the start of a process to the first byte it writes, for commands that take turns.

    first_token.py 9 'mnm chat a.mnm --temp 0 --prompt Once' 'mnm chat b.mnm --temp 0 --prompt Once'
"""
import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time


def first_byte(command):
    """Milliseconds; the rest of what the program would do is cut off."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        byte = os.read(process.stdout.fileno(), 1)
        taken = (time.perf_counter() - start) * 1e3
        process.kill()
    if not byte:
        sys.exit(f"{shlex.join(command)}: ended without a byte of output")
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rounds", type=int)
    parser.add_argument("commands", nargs="+", type=shlex.split, metavar="command")
    options = parser.parse_args()
    times = [[] for _ in options.commands]
    for _ in range(max(options.rounds, 1)):
        for taken, command in zip(times, options.commands):
            taken.append(first_byte(command))
    for taken, command in zip(times, options.commands):
        print(f"{statistics.median(taken):7.1f} ms ({min(taken):.1f} to {max(taken):.1f})  "
              f"{shlex.join(command)}")


main()
