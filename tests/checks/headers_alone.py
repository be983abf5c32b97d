# SPDX-License-Identifier: MIT
"""Every public header compiles by itself. Arguments: the source root, the build root, the compiler
command, and after it the flags that the headers' libraries need."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

import source_tree


def public_headers():
    return [path for path in source_tree.files((".h",))
            if path.parts[0] != "tests" and "src" not in path.parts and
            (len(path.parts) == 2 or path.parts[:2] == ("engine", "analysis")) and
            not path.stem.endswith("_windows")]


def compile_alone(header, compiler, build_root, folder):
    source = os.path.join(folder, str(header).replace("/", "_") + ".cpp")
    with open(source, "w") as file:
        file.write(f'#include "{header}"\n#include "{header}"\n')
    command = compiler + ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Werror",
                          "-I", str(source_tree.root()), "-I", build_root, source]
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{header}:\n{done.stderr}" if done.returncode != 0 else None


with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
    headers = public_headers()
    results = pool.map(lambda h: compile_alone(h, sys.argv[3:], sys.argv[2], folder), headers)
    found = [problem for problem in results if problem]
source_tree.finish(found, f"{len(headers)} headers")
