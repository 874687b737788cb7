# SPDX-License-Identifier: Apache-2.0
"""`orrery plan --layouts` beside what strategies say of a small model: how states and results lie over the ranks.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import orrery

MODEL = """
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local function linear(n, m) return nn.linear(n, m, { bias = false }) end
local net = nn.sequential { linear(1000, 4000), linear(4000, 1000), linear(1000, 4000), linear(4000, 16) }
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, {
  params = net, optimizer = optim.adam { lr = 1e-3 }, microbatches = 4, strategy = { STACK },
})
local rows = orrery.data.arrays { x = orrery.tensor({ { 0.0 } }):expand(8, 1000), y = orrery.tensor({ { 0.0 } }):expand(8, 16) }
run:step(rows:batch(1, { size = 8 }))
"""
ALL = ('strategy.pipeline { size = 2 }, strategy.data { size = 2 }, strategy.zero { stage = 3, units = { "*" } }, '
       'strategy.tensor { size = 2 }')


def layouts(stack, ranks, rank=0):
    """The lines of the output by heading, each as its cells."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(MODEL.replace("STACK", stack))
        script.flush()
        done = orrery("plan", "-n", ranks, "--layouts", "--rank", rank, script.name)
    if done.code != 0:
        raise AssertionError(done.err)
    found, heading = {}, ""
    for line in done.out.splitlines():
        if line.startswith(" "):
            found.setdefault(heading, []).append(re.split(r"  +", line.strip()))
        else:
            heading = line
            found[heading] = []
    return found


class Layouts(unittest.TestCase):
    def test_of_four_strategies(self):
        lines = layouts(ALL, 8)
        self.assertIn("rank 0; axes: pipe 2, data 2, tensor 2; batch: over data in 4 microbatches", lines)
        weights = [row for row in lines["states"] if row[0].endswith("weight")]
        self.assertEqual(weights, [["1.weight", "f32[4000,1000]", "tensor split dim 1, pipe at 0, data flat"],
                                   ["2.weight", "f32[1000,4000]", "tensor split dim 2, pipe at 0, data flat"]])
        products = [row[:3] for row in lines["forward"] if row[0] == "matmul"]
        self.assertEqual(products, [["matmul", "f32[8,4000]", "batch split dim 1, tensor split dim 2, pipe at 0"],
                                    ["matmul", "f32[8,1000]", "batch split dim 1, tensor partial, pipe at 0"]])
        self.assertEqual([row[0] for row in lines["forward"] if " over " in row[0]],
                         ["all_gather over data", "all_gather over data", "all_reduce over tensor", "send over pipe"])
        self.assertIn(["matmul", "f32[4000,1000]", "batch partial, tensor split dim 1, pipe at 0", "sequential.1"],
                      lines["backward"])

    def test_of_the_other_stage(self):
        weights = [row for row in layouts(ALL, 8, 7)["states"] if row[0].endswith("weight")]
        self.assertEqual(weights, [["3.weight", "f32[4000,1000]", "tensor split dim 1, pipe at 1, data flat"],
                                   ["4.weight", "f32[16,4000]", "tensor split dim 2, pipe at 1, data flat"]])

    def test_what_is_whole(self):
        lines = layouts("strategy.data {}", 2)
        self.assertEqual({row[2] for row in lines["states"]}, {"whole"})
        self.assertEqual({row[2] for row in lines["forward"] if row[0] == "matmul"}, {"batch split dim 1"})
        self.assertIn(["matmul", "f32[4000,1000]", "batch partial", "sequential.1"], lines["backward"])

    def test_a_rank_that_nothing_shows(self):
        done = orrery("plan", "-n", 2, "--rank", 1, "examples/regression.lua")
        self.assertEqual(done.code, 2)
        self.assertIn("--rank 1: give --diff or --layouts", done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
