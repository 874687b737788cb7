# SPDX-License-Identifier: Apache-2.0
"""Tensors that have the batch's extent without being made of it (class tokens, noise, masks, counters): each sample gets
its own row, on any number of ranks and microbatches at a time, with the bits of a model that makes them of the batch.

Arguments: the build tree.
"""
import math
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


# A time for each sample goes through two products, a norm over its features and a convolution, with a gradient of its own,
# before samples meet it. Every sample's row is made where the sample is.
THROUGH = """
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local function given(dims, first)
  local values = {}
  for i = 1, dims[1] * dims[2] do values[i] = math.sin(first + i) end
  return nn.parameter(dims, { dtype = "f64", init = orrery.tensor(values, "f64"):reshape(dims) })
end
local first, second = given({ 1, 3 }, 0), given({ 3, 2 }, 5)
local half = orrery.gradient { -- not the gradient of its forward, so that it shows which of the two was taken
  forward = function(x, by) return x:matmul(by) end,
  backward = function(dy, _, x, by) return dy:matmul(by, { transpose_b = true }) * 0.5, x:matmul(dy, { transpose_a = true }) end,
}
local run = orrery.compile(function(b)
  local B = b.x.shape[1]
  local time = (orrery.iota(B):cast "f64" + 1):reshape(B, 1) / B
  local made = half((time:matmul(first):tanh()), second):softmax()
  return ((b.x + made) * made):sum(2):mean()
end, { params = { first = first, second = second }, optimizer = optim.sgd { lr = 1.0 }, microbatches = 3, strategy = strategy.data {} })
orrery.log("%.12g", run:step { x = orrery.tensor({ {1,2},{0,1},{3,1},{2,2},{5,1} }, "f64") }:mean())
for _, p in ipairs { first, second } do
  for _, row in ipairs(p:read():tolist()) do for _, x in ipairs(row) do orrery.log("%.12g", x) end end
end
"""

DERIVED = """
local orrery = require "orrery"
local args = orrery.args { whole = 0 }
local w = orrery.parameter({ 1 }, { init = 2, dtype = "f64" })
local run = orrery.compile(function(b)
  local B = b.x.shape[1]
  local time = (orrery.iota(B):cast "f64" + 1):reshape(B, 1)
  local u = (b.x * (time * w):exp()):sum(2)
  if args.whole > 0 then u = u + time:mean() end
  return orrery.grad(u:sum(), { time })[1]:mean()
end, { params = { w = w }, optimizer = orrery.optim.sgd { lr = 1 }, microbatches = 3 })
local loss = run:step { x = orrery.tensor({ {0.3}, {0.2}, {0.1} }, "f64") }:mean()
orrery.log("%.12g", loss)
orrery.log("%.12g", w:read():item())
"""

REFUSED = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { case = "" }
local held = nn.parameter({ 3, 1 }, {})
local embed = nn.linear(1, 2)
local cases = {
  parameter = function(B) return embed(held) end,
  softmax = function(B) return embed(orrery.uniform { B, 1 }):transpose(1, 2):softmax():transpose(1, 2) end,
  cumsum = function(B) return embed(orrery.uniform { B, 1 }):cumsum(1) end,
  concat = function(B) return orrery.concat({ embed(orrery.uniform { B - 1, 1 }), orrery.zeros { 1, 2 } }, 1) end,
  flip = function(B) return embed(orrery.uniform { B, 1 }):flip(1) end,
  joined = function(B, x) return orrery.concat({ x, orrery.uniform { B, 2 } }, 1) end,
}
local run = orrery.compile(function(b) return (b.x + cases[args.case](3, b.x)):mean() end,
  { params = { held = held, embed = embed }, optimizer = optim.sgd {} })
run:step { x = { { 1.0, 2.0 }, { 2.0, 1.0 }, { 3.0, 0.0 } } }
"""


def trained(first, second, xs):
    """The loss of THROUGH and its weights after the step, by central differences. The gradient of `first` is half of what it
    would be."""
    def loss(flat):
        total = 0
        for i, x in enumerate(xs):
            hidden = [math.tanh((i + 1) / len(xs) * w) for w in flat[:3]]
            scores = [sum(h * flat[3 + 2 * k + j] for k, h in enumerate(hidden)) for j in (0, 1)]
            powers = [math.exp(s) for s in scores]
            made = [p / sum(powers) for p in powers]
            total += sum((a + m) * m for a, m in zip(x, made))
        return total / len(xs)

    flat, after = [*first, *second], []
    for i, w in enumerate(flat):
        sides = [loss([*flat[:i], w + step, *flat[i + 1:]]) for step in (1e-5, -1e-5)]
        after.append(w - (0.5 if i < 3 else 1) * (sides[0] - sides[1]) / 2e-5)
    return [loss(flat), *after]


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

    def test_through_layers(self):
        """Dropout, attention, convolutions, norms, tables: each of them before samples meet it, and met twice."""
        code, want, err = run("-n", 1, HERE / "own_rows_layers.lua", "way=like")
        self.assertEqual((code, len(want.splitlines())), (0, 4), err)
        for ranks, stack in ((1, "recompute"), (2, "pipeline"), (2, "data"), (3, "accumulate"), (3, "data")):
            with self.subTest(ranks=ranks, stack=stack):
                code, out, err = run("-n", ranks, HERE / "own_rows_layers.lua", "way=extent", f"stack={stack}")
                self.assertEqual((code, out), (0, want), err)

    def test_gradients_through_products(self):
        first, second = [math.sin(1 + i) for i in range(3)], [math.sin(6 + i) for i in range(6)]
        want = trained(first, second, [(1, 2), (0, 1), (3, 1), (2, 2), (5, 1)])
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write(THROUGH)
            file.flush()
            for ranks in (1, 3):
                code, out, err = run("-n", ranks, file.name)
                self.assertEqual(code, 0, err)
                got = [float(line) for line in out.splitlines()]
                self.assertEqual(len(got), len(want))
                for a, b in zip(got, want):
                    self.assertAlmostEqual(a, b, delta=1e-9)

    def test_derivatives_by_rows(self):
        """By what a script made of the batch's extent, which samples read row by row: of x exp(t w) it is x w exp(t w)."""
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write(DERIVED)
            file.flush()
            powers = [(x, t, math.exp(2 * t)) for x, t in ((0.3, 1), (0.2, 2), (0.1, 3))]
            want = [sum(2 * x * e for x, _, e in powers) / 3, 2 - sum(x * e * (1 + 2 * t) for x, t, e in powers) / 3]
            for ranks in (1, 3):
                code, out, err = run("-n", ranks, file.name)
                self.assertEqual(code, 0, err)
                for a, b in zip(out.splitlines(), want, strict=True):
                    self.assertAlmostEqual(float(a), b, delta=1e-9 * abs(b))
            code, _, err = run(file.name, "whole=1")
            self.assertEqual(code, 1)
            self.assertIn(f"{file.name}:10: f64[3,1] has the batch's extent in dim 1, and samples meet its rows there, but all of "
                          "it is read, too", err)

    def test_rows_that_are_not_made_each_by_itself(self):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write(REFUSED)
            file.flush()
            for case in ("parameter", "softmax", "cumsum", "concat", "flip"):
                with self.subTest(case=case):
                    code, _, err = run(file.name, f"case={case}")
                    self.assertEqual(code, 1)
                    self.assertIn("does not depend on the batch but has the batch's extent in dim 1", err)
            code, _, err = run(file.name, "case=joined")
            self.assertEqual(code, 1)
            self.assertIn("concat: joins tensors along dim 1 of [3,2], the batch", err)

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
