#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the table of docs/strategies/learner.md: loss after equal tokens, bytes and time per step over slow links, of
each stack of examples/learner.lua.

Arguments: the build tree, steps of the trainings (1000), rounds of the timings (5), the text (Orrery's sources).
"""
import pathlib
import re
import statistics
import subprocess
import sys

BUILD = pathlib.Path(sys.argv[1]).resolve()
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
TEXT = [f"data={sys.argv[4]}"] if len(sys.argv) > 4 else []
SOURCE = pathlib.Path(__file__).resolve().parents[2]
STACKS = ("data", "average10", "diloco10", "diloco50", "easgd", "gossip", "topk", "powersgd", "int8", "onebit")
SAID = re.compile(r"loss ([\d.]+) held-out ([\d.]+), (\d+) bytes a step predicted (\d+), ([\d.]+) ms a step")


def run(stack, steps, speed):
    done = subprocess.run([BUILD / "orrery", "run", "-n", "2", "--threads", "1", *speed, "examples/learner.lua", f"stack={stack}",
                           f"steps={steps}", *TEXT], cwd=SOURCE, capture_output=True, text=True, check=True)
    loss, held_out, counted, predicted, each = SAID.search(done.stdout).groups()
    if counted != predicted:
        raise SystemExit(f"{stack}: {counted} bytes counted, {predicted} predicted")
    return float(loss), float(held_out), int(counted), float(each)


def main():
    times = {stack: [] for stack in STACKS}
    for _ in range(ROUNDS):
        for stack in STACKS:
            times[stack].append(run(stack, 100, ("--link-speed", "100MB"))[3])
    print("| Stack | Loss, held out | Bytes a step | ms a step at 100 MB/s | Time beside data (spread) |")
    print("|---|---|---|---|---|")
    for stack in STACKS:
        _, held_out, counted, _ = run(stack, STEPS, ())
        ratios = [a / b for a, b in zip(times[stack], times["data"])]
        print(f"| {stack} | {held_out:.3f} | {counted:,} | {min(times[stack]):.1f} | {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f}) |", flush=True)


main()
