# SPDX-License-Identifier: Apache-2.0
"""Gradients of 16 bits of many microbatches are the means that they are in float64, whichever way they are added: sums of
16 bits stop growing where a summand is less than half of the last place.

Arguments: the build tree; with "all", every combination is tried, up to 4,096 microbatches.
"""
import itertools
import math
import sys
import unittest

from program import HERE, orrery

DATA, LOOP = "strategy.data {}", "strategy.accumulate {}"
WIRES = {"bf16": "strategy.precision {}", "f16": "strategy.precision { compute = 'f16', loss_scale = 1 }",
         "wire": "strategy.precision { compute = 'f32', wire = 'bf16' }", "f32": "strategy.precision { compute = 'f32' }"}
STACKS = {
    "whole": (1, DATA), "loop": (1, f"{DATA}, {LOOP}"), "ranks": (2, f"{DATA}, {LOOP}"),
    "zero1": (2, f"{DATA}, {LOOP}, strategy.zero {{ stage = 1 }}"), "zero2": (2, f"{DATA}, {LOOP}, strategy.zero {{ stage = 2 }}"),
    "zero3": (2, f"{DATA}, {LOOP}, strategy.zero {{ stage = 3 }}"),
    "pipeline": (2, "strategy.pipeline { size = 2, stages = 'line;table,norm' }, strategy.data {}"),
}


def right(n):
    x = math.fsum(0.5 + i % 3 * 0.5 for i in range(1, n + 1)) / n
    ones = sum(i % 4 == 0 for i in range(1, n + 1)) / n
    found = {"line.weight": [x], "line.bias": [1], "table.weight": [1 - ones, 1 - ones, ones, ones],
             "norm.weight": [1, -1], "norm.bias": [1, 1]}
    return {**found, "norm": [math.sqrt(math.fsum(v * v for values in found.values() for v in values))]}


class Sums(unittest.TestCase):
    def check(self, wire, stack, reduce, n, tolerance):
        ranks, text = STACKS[stack]
        with self.subTest(wire=wire, stack=stack, reduce=reduce, n=n):
            done = orrery("run", "-n", ranks, HERE / "sixteen_bit_sums.lua", f"n={n}", f"microbatches={n}", f"reduce={reduce}",
                          f"stack={text}, {WIRES[wire]}")
            self.assertEqual(done.code, 0, done.err)
            found = {line.split()[0]: [float(v) for v in line.split()[1:]] for line in done.out.splitlines()}
            for name, values in right(n).items():
                for x, y in zip(found[name], values, strict=True):
                    self.assertAlmostEqual(x, y, delta=tolerance * abs(y), msg=name)

    def test_are_the_means(self):
        for wire, stack, reduce in (("bf16", "loop", "fast"), ("bf16", "ranks", "fast"), ("wire", "zero1", "fast"),
                                    ("f16", "pipeline", "fast"), ("bf16", "zero3", "fast"), ("bf16", "loop", "canonical"),
                                    ("bf16", "whole", "fast")):
            self.check(wire, stack, reduce, 1024, 1e-2 if wire != "f16" else 2e-3)

    def test_all(self):
        if "all" not in sys.argv:
            self.skipTest("only if asked for")
        for wire, stack, reduce, n in itertools.product(WIRES, STACKS, ("canonical", "fast"), (1, 3, 64, 500, 4096)):
            if n >= STACKS[stack][0]:
                self.check(wire, stack, reduce, n, {"f32": 1e-5, "f16": 3e-3}.get(wire, 2e-2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
