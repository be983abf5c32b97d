# SPDX-License-Identifier: MIT
"""The include arrows between the layers: who may include what, and what stays private."""
import re

import source_tree

# A folder may include what stands to its right.
ALLOWED = {
    "kernels": {"kernels"},
    "formats": {"formats"},
    "engine": {"engine", "formats", "kernels"},
    "train_bridge": {"train_bridge", "formats", "kernels"},
    "cli": {"cli", "engine", "formats", "train_bridge"},
    "tests": set(source_tree.LAYERS),
}
# Single headers beyond that.
# The quantisers are pure functions that include nothing of ours: the trainer rounds with the same.
ALLOWED_HEADERS = {("formats", "kernels/blocks.h"),
                   ("train_bridge", "engine/analysis/quantizer.h")}
# Made by the build.
GENERATED = {"kernels/built_levels.h", "cli/version.h"}
TBB_HOME = "engine/src/parallel.cpp"
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
ANGLED = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.M)


def target_of(path, included):
    """The included file relative to the root, or None for one that is not ours."""
    for candidate in (source_tree.root() / included, source_tree.root() / path.parent / included):
        if candidate.exists():
            return candidate.resolve().relative_to(source_tree.root().resolve())
    return None


def problems_of(path):
    text = (source_tree.root() / path).read_text()
    layer = path.parts[0]
    for included in QUOTED.findall(text):
        target = target_of(path, included)
        if target is None:
            if included.split("/")[0] in source_tree.LAYERS and included not in GENERATED:
                yield f"{path}: includes {included}, which is not there"
            continue
        other = target.parts[0]
        if other not in ALLOWED[layer] and (layer, str(target)) not in ALLOWED_HEADERS:
            yield f"{path}: {layer} may not include {target}"
        if layer != "tests" and other != layer and "src" in target.parts:
            yield f"{path}: {target} is private to {other}"
    for included in ANGLED.findall(text):
        if included.startswith(("tbb/", "oneapi/tbb")) and str(path) != TBB_HOME:
            yield f"{path}: only {TBB_HOME} may include {included}"


found = [problem for path in source_tree.files(source_tree.CODE) for problem in problems_of(path)]
source_tree.finish(found, "include arrows")
