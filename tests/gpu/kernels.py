# SPDX-License-Identifier: Apache-2.0
"""Where a step's time goes, op by op, beside the least that this card could take for it.

The card's limits are measured in the same minute: large products of each dtype, reading of memory
(examples/machine.lua). An op's floor is its FLOPs or its bytes at those rates, whichever takes longer.
"""
import json
import os
import pathlib
import re
import tempfile

from machine_facts import has_gpu
from runs import last_line, row, run, without_gpu

NAME = "kernels of GPT-2 in bf16"
WORDS = ("batch=64", "vocab=50257")
ROW = re.compile(r"^ *([\d.]+) +([\d.]+) +(\d+) +([\d.]+) (.{8,}?) (.{8,}?)  (\S.*)$")


def parse(text):
    """The rows of a profile: (op, ms of all calls, calls, FLOP/s, bytes/s)."""
    for line in text.splitlines():
        if found := ROW.match(line):
            ms, _, calls, _, gigaflops, gigabytes, op = found.groups()
            yield op, float(ms), int(calls), float(gigaflops.strip() or 0) * 1e9, float(gigabytes.strip() or 0) * 1e9


def share_of_floor(op, flops, bandwidth, machine):
    """Of an op's time, how much its floor is; 0 for what is no op."""
    matrix = machine["matrix_flops"]
    rate = matrix.get((op.split() + [""])[1], matrix["f32"])
    return max(flops / rate, bandwidth / machine["memory_bandwidth"])


def table(text, machine):
    """A line for each op, and one for all of them."""
    whole, least, lines = 0.0, 0.0, []
    for op, ms, calls, flops, bandwidth in parse(text):
        share = share_of_floor(op, flops, bandwidth, machine)
        whole, least = whole + ms, least + ms * share
        beside = f"{1 / share:6.2f} x floor" if share else " " * 14
        lines.append(f"{ms:9.2f} ms {calls:6} calls {flops / 1e12:8.2f} TFLOP/s {bandwidth / 1e9:8.1f} GB/s {beside}  {op}")
    return lines + [f"{whole:9.2f} ms in all, floor {least:.2f} ms"]


def beside_the_floor(root, facts):
    if not has_gpu(facts):
        yield without_gpu(NAME)
        return
    os.environ["ORRERY_LUA_PATH"] = str(root / "tests")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "machine.json")
        limits = run("orrery", "run", "--kernels", "cuda", root / "examples/machine.lua", f"out={file}", "dtypes=f32,bf16", "size=8192")
        if limits.returncode:
            yield row(NAME, "failed", last_line(limits))
            return
        machine = json.loads(file.read_text())
    yield row("limits of this card", "measured", json.dumps({k: machine[k] for k in ("matrix_flops", "memory_bandwidth")}))
    for numerics in ("exact", "fast"):
        done = run("orrery", "run", "--kernels", "cuda", "--profile", root / "tests/gpu/gpt2.lua", *WORDS, f"numerics={numerics}")
        if done.returncode:
            yield row(f"{NAME}, {numerics}", "failed", last_line(done))
            continue
        for line in table(done.stdout, machine):
            yield row(f"{NAME}, {numerics}", "measured", line)
