# SPDX-License-Identifier: MIT
"""Objects compiled for an instruction set export one function and share nothing.

A weak symbol (an inline function or a template) compiled with -mavx2 may be the copy that the
linker keeps for the whole program; old processors then die of it. Arguments: the libraries.
"""
import re
import shutil
import subprocess
import sys

SYMBOL = re.compile(r"^(?:[0-9a-fA-F]+)?\s*([A-Za-z?-])\s+(.+)$")


def problems_of(library):
    listed = subprocess.run(["nm", "-C", library], check=True, stdout=subprocess.PIPE,
                            text=True).stdout
    text_symbols = {}
    member = library
    for line in listed.splitlines():
        if line.endswith(":"):
            member = line[:-1]
            text_symbols.setdefault(member, [])
            continue
        match = SYMBOL.match(line)
        if not match:
            continue
        kind, name = match.groups()
        if kind in "WwVvu":
            yield f"{library}: {member}: weak or unique symbol {name}"
        elif kind == "T":
            text_symbols.setdefault(member, []).append(name)
        elif kind in "DBRC":
            yield f"{library}: {member}: exported data {name}"
    if not text_symbols:
        yield f"{library}: no objects seen"
    for member, names in text_symbols.items():
        if len(names) != 1:
            yield f"{library}: {member}: exports {len(names)} functions: {', '.join(names)}"


if shutil.which("nm") is None:
    print("skipped: there is no nm")
    sys.exit(77)
found = [problem for library in sys.argv[1:] for problem in problems_of(library)]
print("\n".join(found))
print(f"{len(found)} problems in {len(sys.argv) - 1} libraries")
sys.exit(1 if found or len(sys.argv) == 1 else 0)
