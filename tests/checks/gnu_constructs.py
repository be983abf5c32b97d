# SPDX-License-Identifier: MIT
"""No GNU-only construct outside an instruction set's units, so that MSVC can build the rest."""
import re

import source_tree

CONSTRUCT = re.compile(
    r"__builtin_\w+|__attribute__|__asm__|\basm\b\s*(volatile)?\s*\(|\b__int128\b|\btypeof\b|"
    r"\bssize_t\b|__PRETTY_FUNCTION__|#\s*include\s*<(unistd\.h|sys/|bits/|cxxabi\.h)")
DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
# A branch with one of these in its condition, or the other side of one, is not MSVC's.
PLAIN = ("src", "ref", "portable")
GUARD = re.compile(r"__GNUC__|__clang__|__linux__|__APPLE__|_WIN32|_MSC_VER|MNM_LIBEDIT")


def exempt(path):
    parts = path.parts
    isa_unit = parts[0] == "kernels" and len(parts) > 2 and parts[1] not in PLAIN
    return isa_unit or path.stem.endswith("_posix")


def problems_of(path):
    guards = []
    for number, line in enumerate((source_tree.root() / path).read_text().splitlines(), 1):
        if directive := DIRECTIVE.match(line):
            word, condition = directive.groups()
            if word.startswith("if"):
                guards.append(bool(GUARD.search(condition)))
            elif word == "elif":
                guards[-1] = guards[-1] or bool(GUARD.search(condition))
            elif word == "endif":
                guards.pop()
        code = line.split("//")[0]
        if (found := CONSTRUCT.search(code)) and not any(guards):
            yield f"{path}:{number}: {found.group(0)}"


found = []
for path in source_tree.files(source_tree.CODE):
    if path.parts[0] != "tests" and not exempt(path):
        found.extend(problems_of(path))
source_tree.finish(found, "the search for GNU-only constructs")
