# SPDX-License-Identifier: Apache-2.0
"""Orrery alone: tokens per second of GPT-2 124M in bf16, with exact bits and fast, by the clock of whole steps."""
import os
import re
import statistics

from checks import has_gpu
from runs import last_line, row, run, without_gpu

CTX = 1024
WAYS = [(batch, vocab, numerics) for batch, vocab in ((64, 50257), (16, 50257), (64, 50304), (16, 50304))
        for numerics in ("exact", "fast")]


def name_of(batch, vocab, numerics):
    return f"GPT-2 124M, batch {batch} x {CTX}, vocabulary {vocab}, {numerics}"


def measured(name, batch, text):
    """The row of a run of gpt2.lua by what it printed."""
    times = [float(x) for x in re.findall(r"^step ([\d.]+) ms", text, re.M)]
    losses = re.findall(r"loss (\S+)$", text, re.M)
    memory = re.search(r"^memory (\d+) MiB", text, re.M)
    if not times or not memory:
        return row(name, "failed", f"no times: {text.strip().splitlines()[-1:] or 'nothing was printed'}")
    ms = statistics.median(times)
    return row(name, "measured", f"{batch * CTX / ms * 1000:,.0f} tokens/s; {ms:.2f} ms a step (best {min(times):.2f}, worst "
               f"{max(times):.2f}); loss {losses[0]} to {losses[-1]}; {memory[1]} MiB")


def speed(root, facts):
    if not has_gpu(facts):
        yield without_gpu("tokens per second of GPT-2 124M")
        return
    os.environ["ORRERY_LUA_PATH"] = str(root / "tests")
    for batch, vocab, numerics in WAYS:
        done = run("orrery", "run", "-n", "1", "--kernels", "cuda", root / "tests/gpu/gpt2.lua", f"batch={batch}", f"vocab={vocab}",
                   f"numerics={numerics}", "steps=13")
        name = name_of(batch, vocab, numerics)
        yield row(name, "failed", last_line(done)) if done.returncode else measured(name, batch, done.stdout)
