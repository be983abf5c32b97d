# SPDX-License-Identifier: MIT
"""The level avx_vnni_int8 uses vpdpbssd, and nothing in it is EVEX-encoded.

Processors with AVX-VNNI-INT8 need not have AVX-512: an EVEX prefix (62) would be an illegal
instruction there. Argument: the library of the level.
"""
import re
import shutil
import subprocess
import sys

LINE = re.compile(r"^\s*[0-9a-f]+:\t((?:[0-9a-f]{2} )+)\s*(?:\t(\S+)(.*))?$")
# vpdpbssd is VEX.F2.0F38.W0 50; an objdump older than the instruction prints "(bad)" for it.
DPBSSD = re.compile(r"^c4 [0-9a-f]2 [0-9a-f][37bf] 50")


def main(library):
    if shutil.which("objdump") is None:
        print("skipped: there is no objdump")
        return 77
    listed = subprocess.run(["objdump", "-d", "-w", library], stdout=subprocess.PIPE, text=True)
    if listed.returncode != 0:
        print(f"skipped: objdump cannot read {library}")
        return 77
    named = len(re.findall(r"\bvpdpbssd\b", listed.stdout))
    by_bytes = evex = 0
    for line in listed.stdout.splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        code, name = match.group(1), match.group(2) or ""
        by_bytes += bool(DPBSSD.match(code))
        if code.startswith("62 "):
            print(f"EVEX: {line.strip()}")
            evex += 1
        if name == "vpdpbssd" and not code.startswith("c4 "):
            print(f"not VEX: {line.strip()}")
            evex += 1
    if named == 0 and by_bytes == 0:
        if "(bad)" in listed.stdout:
            print("skipped: this objdump does not know vpdpbssd")
            return 77
        print(f"{library}: no vpdpbssd")
        return 1
    print(f"{max(named, by_bytes)} vpdpbssd, {evex} EVEX encodings")
    return 1 if evex else 0


sys.exit(main(sys.argv[1]))
