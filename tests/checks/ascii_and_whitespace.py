# SPDX-License-Identifier: MIT
"""Sources are ASCII, without tabs and trailing blanks, end in a newline and keep to 100 columns."""
import source_tree

COLUMNS = 100


def problems_of(path):
    data = (source_tree.root() / path).read_bytes()
    if data and not data.endswith(b"\n"):
        yield f"{path}: no newline at the end"
    if data.endswith(b"\n\n"):
        yield f"{path}: blank line at the end"
    for number, line in enumerate(data.split(b"\n"), 1):
        where = f"{path}:{number}"
        if any(byte > 126 for byte in line):
            yield f"{where}: not ASCII"
        if b"\t" in line or b"\r" in line:
            yield f"{where}: tab or carriage return"
        if line.endswith(b" "):
            yield f"{where}: trailing blank"
        if len(line.decode(errors="replace")) > COLUMNS:
            yield f"{where}: longer than {COLUMNS} columns"


found = [problem for path in source_tree.files(source_tree.TEXT) for problem in problems_of(path)]
source_tree.finish(found, "white space and letters")
