# SPDX-License-Identifier: MIT
"""Which files of the repository the checks look at."""
import os
import pathlib
import sys

LAYERS = ("kernels", "formats", "engine", "train_bridge", "cli", "tests")
CODE = (".cpp", ".h", ".hpp", ".cc", ".c", ".cu", ".cuh")
TEXT = CODE + (".py", ".mjs", ".js", ".sh", ".build", ".in", ".S")


def root():
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        return pathlib.Path(sys.argv[1])
    return pathlib.Path(__file__).resolve().parents[2]


def files(endings):
    """Paths relative to the root, sorted."""
    found = []
    for layer in LAYERS:
        for path in (root() / layer).rglob("*"):
            if path.suffix in endings and path.is_file() and "__pycache__" not in path.parts:
                found.append(path.relative_to(root()))
    return sorted(found)


def finish(problems, what):
    """Prints the problems and ends with the status meson reads."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems in {what}")
    sys.exit(1 if problems else 0)
