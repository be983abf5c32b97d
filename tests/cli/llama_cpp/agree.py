# SPDX-License-Identifier: MIT
"""Real llama.cpp reads our GGUF files and says what mnm says.

It comes as the npm package node-llama-cpp, which ./test installs into build/node; without it this
test is skipped. Ids go in and ids come out, so that no tokenizer stands in between.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

MNM = os.environ["MNM"]
MODULES = pathlib.Path(os.environ["MNM_NODE_MODULES"])
CHECKPOINT = pathlib.Path(os.environ["MNM_SOURCE_ROOT"]) / "models" / "tales-chat.ckpt"
REFERENCE = pathlib.Path(os.environ["MNM_FIXTURES"]) / "tales" / "reference.json"
SCRIPT = pathlib.Path(__file__).with_name("evaluate.mjs")
COUNT = 60


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def node_program():
    """Node.js 20 or later: the system's, or the one that ./test has put beside the package."""
    for program in [*MODULES.glob("node-linux-*/bin/node"), shutil.which("node")]:
        if program is None:
            continue
        version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout
        if int(version.strip().lstrip("v").split(".")[0] or 0) >= 20:
            return program
    return None


def run_mnm(*arguments):
    subprocess.run([MNM, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def last_row_argmax(model, ids, folder):
    """The first maximum of the logits after the last id, as mnm computes them."""
    out = folder / "logits.npy"
    run_mnm("logits", model, "--ids", ",".join(map(str, ids)), "--out", out, "-q")
    data = out.read_bytes()
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    cols = (len(data) - start) // 4 // len(ids)
    row = struct.unpack_from(f"<{cols}f", data, len(data) - 4 * cols)
    return row.index(max(row))


def greedy(model, ids, count, folder):
    found = []
    for _ in range(count):
        found.append(last_row_argmax(model, ids + found, folder))
    return found


def main(folder):
    prompts = [entry["ids"] for entry in json.loads(REFERENCE.read_text())["greedy"]]
    runs, wanted = [], []
    for kind, ours, count in (("f32", "f32", COUNT), ("q8_0", "q8", 1), ("q4_0", "q4", 1)):
        gguf, model = folder / f"{kind}.gguf", folder / f"{ours}.mnm"
        run_mnm("gguf", CHECKPOINT, gguf, "--type", kind, "-q")
        run_mnm("quantize", CHECKPOINT, model, "--type", ours, "-q")
        for ids in prompts:
            runs.append({"model": str(gguf), "ids": ids, "count": count})
            wanted.append(greedy(model, ids, count, folder))
    job = folder / "job.json"
    job.write_text(json.dumps({"modules": str(MODULES.resolve()), "runs": runs}))
    done = subprocess.run([NODE, SCRIPT, job], stdout=subprocess.PIPE, text=True, timeout=400)
    if done.returncode != 0:
        sys.exit(f"node-llama-cpp ended with status {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    problems = 0
    for run, ours, theirs in zip(runs, wanted, found):
        same = theirs == ours[:len(theirs)] and len(theirs) == run["count"]
        problems += not same
        name = pathlib.Path(run["model"]).name
        print(f"{'same' if same else 'DIFFERENT'}: {name}, prompt of {len(run['ids'])} tokens, "
              f"{run['count']} tokens" + ("" if same else f": mnm {ours}, llama.cpp {theirs}"))
    sys.exit(1 if problems else 0)


if not (MODULES / "node-llama-cpp" / "package.json").exists():
    skip(f"node-llama-cpp is not at {MODULES}; ./test installs it where npm works")
if not REFERENCE.exists():
    skip(f"no fixtures at {REFERENCE}")
NODE = node_program()
if NODE is None:
    skip("there is no Node.js of version 20 or later")
with tempfile.TemporaryDirectory() as temporary:
    main(pathlib.Path(temporary))
