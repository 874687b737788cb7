# SPDX-License-Identifier: Apache-2.0
"""The first look at a card: one copy, one pointwise kernel, products, a replayed graph (first.lua)."""
import re

from checks import has_gpu
from runs import last_line, row, run, without_gpu

LINE = re.compile(r"^(.+) (passed|failed(?:: .*)?) \(([\d.]+) s\)$")


def first_kernels(root, facts):
    if not has_gpu(facts):
        yield without_gpu("the first kernels")
        return
    done = run("orrery", "run", "-n", "1", "--kernels", "cuda", root / "tests/gpu/first.lua")
    for line in done.stdout.splitlines():
        if found := LINE.match(line):
            name, verdict, seconds = found.groups()
            yield row(name, verdict.partition(":")[0], f"{seconds} s{verdict.partition(':')[1]}{verdict.partition(':')[2]}")
    if done.returncode:
        yield row("the first kernels", "failed", f"exit {done.returncode}: {last_line(done)}")
