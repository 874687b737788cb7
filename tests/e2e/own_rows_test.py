# SPDX-License-Identifier: Apache-2.0
"""Tensors that have the batch's extent without being made of it (class tokens, noise, masks, counters): each sample gets
its own row, on any number of ranks and microbatches at a time, with the bits of a model that makes them of the batch.

Arguments: the build tree.
"""
import pathlib
import sys
import tempfile
import unittest

from program import orrery

HERE = pathlib.Path(__file__).parent

TABLE = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { own = 1 }
local table = orrery.parameter({ 5, 2 }, { dtype = "f64", init = orrery.tensor({ {1,2},{3,4},{5,6},{7,8},{9,10} }, "f64") })
local other = nn.parameter({ 1 }, { dtype = "f64", init = nn.init.constant(0.5) })
local run = orrery.compile(function(b)
  local rows = table * other
  if args.own > 0 then rows = rows:for_each_sample() end
  return (rows * b.x):sum(2):mean()
end, { params = { table = table, other = other }, optimizer = optim.sgd { lr = 1.0 }, microbatches = 3 })
local x = orrery.tensor({ {1,1},{2,1},{3,1},{4,1},{5,1} }, "f64")
orrery.log("loss %g", run:step { x = x }:mean())
for _, row in ipairs(table:read():tolist()) do orrery.log("%.12g %.12g", row[1], row[2]) end
orrery.log("%.12g", other:read():item())
-- In a function without a batch it is the tensor.
orrery.log("%g", orrery.func(function(t) return t:for_each_sample():sum() end)(x):item())
"""


def run(*words):
    done = orrery("run", *words)
    return done.code, done.out, done.err


class OwnRows(unittest.TestCase):
    def test_as_if_made_of_the_batch(self):
        code, want, err = run("-n", 1, HERE / "own_rows.lua", "way=like")
        self.assertEqual((code, len(want.splitlines())), (0, 5), err)
        for ranks in (1, 2, 3):
            for stack in ("data", "accumulate", "recompute", "pipeline"):
                if (stack == "pipeline") == (ranks == 2) or stack == "data":
                    with self.subTest(ranks=ranks, stack=stack):
                        code, out, err = run("-n", ranks, HERE / "own_rows.lua", "way=extent", f"stack={stack}")
                        self.assertEqual((code, out), (0, want), err)

    def test_other_numbers_differ(self):
        base = run(HERE / "own_rows.lua")[1]
        self.assertNotEqual(run(HERE / "own_rows.lua", "batch=6")[1], base)

    def test_a_table_whose_rows_are_told_apart(self):
        """What the script holds is taken for the samples' only where it says so, and has its gradient: here of the mean
        of other * sum(table * x), of table 0.5 x / 5, of other the mean of sum(table * x)."""
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write(TABLE)
            file.flush()
            table = [(2 * i + 1, 2 * i + 2) for i in range(5)]
            sums = [a * (i + 1) + b for i, (a, b) in enumerate(table)]
            want = [f"loss {0.5 * sum(sums) / 5:g}"]
            want += [f"{a - 0.1 * (i + 1):.12g} {b - 0.1:.12g}" for i, (a, b) in enumerate(table)]
            want += [f"{0.5 - sum(sums) / 5:.12g}", "20"]
            for ranks in (1, 3):
                code, out, err = run("-n", ranks, file.name)
                self.assertEqual((code, out.splitlines()), (0, want), err)
            code, _, err = run(file.name, "own=0")
            self.assertEqual(code, 1)
            self.assertIn(f"{file.name}:10: pointwise: operand 1 f64[5,2], made at {file.name}:8, does not depend on the batch but "
                          "has the batch's extent in dim 1; if its rows belong to the samples in their order, put them first "
                          "and write x:for_each_sample() where it is made", err)

    def test_sums_over_the_batch_are_not_made_so(self):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write("""
local orrery = require "orrery"
local p = orrery.parameter({ 1 }, { init = 1 })
local run = orrery.compile(function(b) return (orrery.ones { 1, 3 }:matmul(b.x) * p):sum() end,
  { params = { p = p }, optimizer = orrery.optim.sgd {} })
run:step { x = { { 1.0 }, { 2.0 }, { 3.0 } } }
""")
            file.flush()
            code, _, err = run(file.name)
            self.assertEqual(code, 1)
            self.assertIn("does not depend on the batch but has the batch's extent in dim 2", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
