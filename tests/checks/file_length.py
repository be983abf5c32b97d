# SPDX-License-Identifier: MIT
"""No source file is longer than 400 lines: a file is one noun."""
import source_tree

LIMIT = 400
found = []
for path in source_tree.files(source_tree.TEXT):
    lines = len((source_tree.root() / path).read_bytes().splitlines())
    if lines > LIMIT:
        found.append(f"{path}: {lines} lines, at most {LIMIT}")
source_tree.finish(found, "file lengths")
