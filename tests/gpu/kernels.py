# SPDX-License-Identifier: Apache-2.0
"""Where a step's time goes, op by op, beside the least that this card could take for it.

The least of a product is what cuBLASLt's fastest algorithm takes on the same shapes, windows being a matrix, of
all else the bytes that it reads and writes at the rate of a copy (floor.cpp).
"""
import math
import os
import re

from machine_facts import has_gpu
from runs import last_line, row, run, without_gpu

GPT2, RESNET = "kernels of GPT-2 in bf16", "kernels of ResNet-18 in bf16"
# (what it is, numerics, the script and its words)
PROFILES = [(GPT2, numerics, "gpt2.lua", ("batch=64", "vocab=50257")) for numerics in ("exact", "fast")]
PROFILES += [(RESNET, "exact", "resnet.lua", ())]
ROW = re.compile(r"^ *([\d.]+) +([\d.]+) +(\d+) +([\d.]+) (.{8,}?) (.{8,}?)  (\S.*)$")


def parse(text):
    """The rows of a profile: (op, ms of all calls, calls, FLOP/s, bytes/s)."""
    for line in text.splitlines():
        if found := ROW.match(line):
            ms, _, calls, _, gigaflops, gigabytes, op = found.groups()
            yield op, float(ms), int(calls), float(gigaflops.strip() or 0) * 1e9, float(gigabytes.strip() or 0) * 1e9


def product(op):
    """How gpu-floor calls an op that is a matrix product, "" if it is none."""
    found = re.match(r"matmul(?:_pointwise)? (?:(bf16) )?\[1,([\d,]+)\]('?) \[1,([\d,]+)\]('?)", op)
    if not found:
        return ""
    dtype, turned_a, turned_b = found[1], found[3], found[5]
    a, b = ([int(x) for x in found[i].split(",")] for i in (2, 4))
    k = b[0] if len(b) == 2 else a[1]  # the other one may be windows
    m, n = math.prod(a) // k, math.prod(b) // k
    if dtype:  # an odd vocabulary is computed with it rounded up
        m, n, k = (-(-x // 8) * 8 for x in (m, n, k))
    return f"{dtype or 'f32'}:{m}:{n}:{k}:{'a' * bool(turned_a)}{'b' * bool(turned_b)}" + ("" if turned_a or turned_b else "n")


def floors(text):
    """(bytes per second of a copy, {product: ms}) by what gpu-floor printed."""
    copy, *products = (line.split() for line in text.splitlines())
    return float(copy[1]), {name: float(ms) for name, ms in products}


def table(text, copy, products):
    """A line for each op, and one for all of them."""
    whole, least, lines = 0.0, 0.0, []
    for op, ms, calls, flops, bandwidth in parse(text):
        name = product(op)
        floor = products[name] * calls if name in products else ms * bandwidth / copy
        whole, least = whole + ms, least + floor
        beside = f"{ms / floor:6.2f} x floor" if floor else " " * 14
        lines.append(f"{ms:9.2f} ms {calls:6} calls {flops / 1e12:8.2f} TFLOP/s {bandwidth / 1e9:8.1f} GB/s {beside}  {op}")
    return lines + [f"{whole:9.2f} ms in all, floor {least:.2f} ms"]


def beside_the_floor(root, facts):
    if not has_gpu(facts):
        yield from map(without_gpu, (GPT2, RESNET))
        return
    os.environ["ORRERY_LUA_PATH"] = str(root / "tests")
    profiles = {}
    for name, numerics, script, words in PROFILES:
        done = run("orrery", "run", "--kernels", "cuda", "--profile", root / "tests/gpu" / script, *words, f"numerics={numerics}")
        if done.returncode:
            yield row(f"{name}, {numerics}", "failed", last_line(done))
        else:
            profiles[name, numerics] = done.stdout
    done = run("gpu-floor", *sorted({product(op) for text in profiles.values() for op, *_ in parse(text)} - {""}))
    if done.returncode:
        yield row("floors", "failed", last_line(done))
        return
    copy, products = floors(done.stdout)
    yield row("floors", "measured", f"copies {copy / 1e9:.0f} GB/s; products in ms {products}")
    for (name, numerics), text in profiles.items():
        for line in table(text, copy, products):
            yield row(f"{name}, {numerics}", "measured", line)
