#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The speed of llama.cpp's prebuilt libraries, as llama-bench would report it.

    LLAMA_CPP_LIBRARIES=build/node/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64 \\
        tests/bench/llama_cpp_bench.py -m MODEL.gguf [-p 512] [-n 128] [-t 2] [-r 5]

The npm package that ./test installs holds them, one for each generation of processors;
LLAMA_CPP_CPU=haswell takes that one instead of the best. They are called through their C
interface, for the package's JavaScript takes longer than a token. side_by_side.py takes this for
a llama-bench.
"""
import argparse
import ctypes
import glob
import json
import os
import statistics
import sys
import time

# Structures that the library passes by value, with room for what later versions add to their ends;
# of each only what has stood first for years is touched here.
Parameters = ctypes.c_uint64 * 128


class ByValue(ctypes.Structure):
    _fields_ = [("words", Parameters)]


class Context(ctypes.Structure):
    _fields_ = [("n_ctx", ctypes.c_uint32), ("n_batch", ctypes.c_uint32),
                ("n_ubatch", ctypes.c_uint32), ("rest", Parameters)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("pointers", ctypes.c_void_p * 6)]


def library(name):
    found = glob.glob(os.path.join(os.environ["LLAMA_CPP_LIBRARIES"], name))
    if len(found) != 1:
        sys.exit(f"LLAMA_CPP_LIBRARIES holds {len(found)} files {name}, not one")
    return found[0]


def load():
    """libllama and, behind it, the library of one generation of processors."""
    ctypes.CDLL(library("libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
    ggml = ctypes.CDLL(library("libggml.v*.so"), mode=ctypes.RTLD_GLOBAL)
    cpu = os.environ.get("LLAMA_CPP_CPU")
    if cpu:
        ggml.ggml_backend_load(library(f"libggml-cpu-{cpu}.so").encode())
    else:
        ggml.ggml_backend_load_all_from_path(os.environ["LLAMA_CPP_LIBRARIES"].encode())
    llama = ctypes.CDLL(library("libllama.v*.so"))
    for name, result, arguments in (
            ("llama_model_default_params", ByValue, []),
            ("llama_context_default_params", Context, []),
            ("llama_model_load_from_file", ctypes.c_void_p, [ctypes.c_char_p, ByValue]),
            ("llama_init_from_model", ctypes.c_void_p, [ctypes.c_void_p, Context]),
            ("llama_set_n_threads", None, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]),
            ("llama_get_memory", ctypes.c_void_p, [ctypes.c_void_p]),
            ("llama_memory_clear", None, [ctypes.c_void_p, ctypes.c_bool]),
            ("llama_batch_get_one", Batch, [ctypes.POINTER(ctypes.c_int32), ctypes.c_int32]),
            ("llama_decode", ctypes.c_int32, [ctypes.c_void_p, Batch]),
            ("llama_synchronize", None, [ctypes.c_void_p])):
        function = getattr(llama, name)
        function.restype, function.argtypes = result, arguments
    return llama


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", dest="model", required=True)
    parser.add_argument("-p", dest="prefill", type=int, default=512)
    parser.add_argument("-n", dest="decode", type=int, default=128)
    parser.add_argument("-t", dest="threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-r", dest="repeats", type=int, default=5)
    parser.add_argument("-o", dest="form", choices=["json"], default="json")
    arguments = parser.parse_args()

    llama = load()
    model = llama.llama_model_load_from_file(arguments.model.encode(),
                                             llama.llama_model_default_params())
    parameters = llama.llama_context_default_params()
    parameters.n_ctx = max(arguments.prefill, arguments.decode, 256)
    parameters.n_batch = parameters.n_ubatch = 512
    context = model and llama.llama_init_from_model(model, parameters)
    if not context:
        sys.exit(f"{arguments.model}: llama.cpp cannot load it")
    llama.llama_set_n_threads(context, arguments.threads, arguments.threads)

    def seconds(count, step):
        ids = (ctypes.c_int32 * step)(*range(100, 100 + step))
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        start = time.perf_counter()
        for _ in range(0, count, step):
            if llama.llama_decode(context, llama.llama_batch_get_one(ids, step)) != 0:
                sys.exit(f"{arguments.model}: llama.cpp cannot compute")
            llama.llama_synchronize(context)
        return time.perf_counter() - start

    runs = []
    for n_prompt, n_gen in ((arguments.prefill, 0), (0, arguments.decode)):
        count, step = n_prompt + n_gen, min(n_prompt, 512) or 1
        seconds(step, step) # warms up
        middle = statistics.median(seconds(count, step) for _ in range(arguments.repeats))
        runs.append({"n_prompt": n_prompt, "n_gen": n_gen, "avg_ts": count / middle})
    print(json.dumps(runs))


main()
