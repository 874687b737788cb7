# SPDX-License-Identifier: Apache-2.0
"""Ranks that train alone are what processes of their own would be, and their average is the mean.

Arguments: the build tree.
"""
import array
import pathlib
import re
import tempfile
import unittest

import shards
from program import HERE, orrery

ALONE = "{ strategy.average{ every = %d, states = %s } }"


def tensors(folder, kind="model"):
    """{name: floats} of a checkpoint: the model's, or the optimizer's."""
    return {name: x for name, x in shards.tensors(folder).items() if name.startswith("optim.") == (kind == "optimizer")}

# Prints two losses and a result that is made of weights alone, on every rank.
WRITTEN = """local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local Net = nn.module("net", function(m)
  m.a, m.b = nn.linear(1, 1, { bias = false }), nn.linear(1, 1, { bias = false })
  return function(batch)
    local penalty = m.a.weight:sumsq() + m.b.weight:sumsq()
    return m.b(m.a(batch.x)):mean() + penalty, { penalty = penalty }
  end
end)
local net = Net()
net.a.weight:write(orrery.tensor({ { 2 } }, "f32"))
net.b.weight:write(orrery.tensor({ { 0.5 } }, "f32"))
FREEZE
local run = orrery.compile(net, { params = net, microbatches = 4, optimizer = orrery.optim.sgd { lr = 0.125 }, strategy = STACK })
for _ = 1, 2 do
  local result = run:step { x = orrery.tensor({ { 1 }, { 1 }, { 3 }, { 3 } }, "f32") }
  print("result", result:mean(), result:get "penalty")
end
"""


class Average(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_stack(self, stack, ranks, *words, clip="1e9", part=None):
        script = self.folder / "script.lua"
        template = (HERE / "strategies.lua").read_text()
        source = template.replace("STACK", stack).replace("clip = 0.5", f"clip = {clip}")
        if part:  # (first, samples) of each batch
            begin = "local skip = math.max(args.half - 1, 0) * rows"
            self.assertIn(begin, source)
            source = source.replace(begin, "local skip = %d; rows = %d" % part)
        script.write_text(source)
        return orrery("run", "-n", ranks, script, "model=mlp", *words)

    def trained(self, stack, ranks, *words, name="ck"):
        done = self.run_stack(stack, ranks, *words, f"save={self.folder / name}")
        self.assertEqual(done.code, 0, done.err)
        return [float(x) for x in re.findall(r"^step \d+ loss (\S+)", done.out, re.MULTILINE)]

    def test_the_mean_of_processes_of_their_own(self):
        for optimizer in ("sgd", "adamw"):
            words = (f"optimizer={optimizer}", "steps=4", "eval=false")
            self.trained(ALONE % (4, "true"), 2, *words, "batch=16", "microbatches=8", name="both")
            for half in (1, 2):
                self.trained("nil", 1, *words, "batch=8", "microbatches=4", f"half={half}", name=f"h{half}")
            files = ("model", "optimizer") if optimizer == "adamw" else ("model",)
            for file in files:
                both, one, two = (tensors(self.folder / name, file) for name in ("both", "h1", "h2"))
                self.assertEqual(set(both), set(one))
                for name, values in both.items():
                    mean = array.array("f", ((a + b) / 2 for a, b in zip(one[name], two[name])))
                    with self.subTest(optimizer=optimizer, tensor=name):
                        self.assertEqual(values, mean)
                        if not name.endswith(".count"):
                            self.assertNotEqual(one[name], two[name])

    def test_every_step_with_sgd_is_data_parallel_but_for_rounding(self):
        words = ("optimizer=sgd", "steps=8", "batch=16", "eval=false")
        data = self.trained("{ strategy.data{} }", 2, *words)
        for a, b in zip(data, self.trained(ALONE % (1, "false"), 2, *words), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5 * a)
        apart = self.trained(ALONE % (8, "false"), 2, *words)
        self.assertNotAlmostEqual(data[-1], apart[-1], delta=1e-5 * data[-1])

    def test_one_rank_is_one_process(self):
        words = ("optimizer=adamw", "steps=4", "eval=false")
        self.trained(ALONE % (2, "false"), 1, *words, name="a")
        self.trained("nil", 1, *words, name="b")
        self.assertEqual(tensors(self.folder / "a"), tensors(self.folder / "b"))

    def test_saved_between_averages_continued_there(self):
        stack = ALONE % (3, "false")
        self.trained(stack, 2, "steps=8", "eval=false", name="whole")
        self.trained(stack, 2, "stop=4", "eval=false", name="ck")
        self.assertIn("a.weight@1", tensors(self.folder / "ck"))
        self.trained(stack, 2, "steps=8", "eval=false", f"load={self.folder / 'ck'}", name="rest")
        self.assertEqual(tensors(self.folder / "rest"), tensors(self.folder / "whole"))
        # On another number of ranks all go on from the mean.
        self.trained(stack, 1, "stop=4", "steps=4", "eval=false", f"load={self.folder / 'ck'}", name="one")
        ck, one = tensors(self.folder / "ck"), tensors(self.folder / "one")
        mean = array.array("f", ((a + b) / 2 for a, b in zip(ck["a.weight@0"], ck["a.weight@1"])))
        self.assertEqual(one["a.weight"], mean)

    def test_a_rank_without_a_sample_skips_the_step(self):
        """Of the ragged batch of step 9, 12 samples in leaves of two, the last of four ranks gets none."""
        for optimizer, states in (("adamw", "true"), ("sgd", "false")):
            with self.subTest(optimizer=optimizer):
                stack, words = ALONE % (8, states), (f"optimizer={optimizer}", "batch=15", "eval=false")
                self.trained(stack, 4, *words, "stop=8", name="before")
                loss = self.trained(stack, 4, *words, "steps=9", name="after")[-1]
                # All have the same weights before it: the loss is that of one process.
                [alone] = self.trained("nil", 1, *words, "steps=9", f"load={self.folder / 'before'}", name="alone")
                self.assertAlmostEqual(loss, alone, delta=1e-6 * alone)
                for file in ("model", "optimizer") if optimizer == "adamw" else ("model",):
                    before, after = (tensors(self.folder / name, file) for name in ("before", "after"))
                    for name, values in after.items():
                        same = values == before[name if name in before else name.split("@")[0]]
                        self.assertEqual(same, name.endswith("@3"), name)

    def test_the_norm_is_the_mean_of_those_with_samples(self):
        def norm(stack, ranks, *words, part=None, clip="1e9"):
            done = self.run_stack(stack, ranks, *words, "eval=false", part=part, clip=clip)
            self.assertEqual(done.code, 0, done.err)
            return float(re.findall(r"norm (\S+)$", done.out, re.MULTILINE)[-1])
        self.run_stack(ALONE % (8, "false"), 4, "optimizer=sgd", "batch=15", "stop=8", f"save={self.folder / 'at'}")
        words = ("optimizer=sgd", "batch=15", f"load={self.folder / 'at'}", "steps=9")
        norms = [norm("nil", 1, *words, "microbatches=1", part=part) for part in ((0, 4), (4, 4), (8, 4))]
        mean = sum(norms) / 3
        for clip in ("1e9", "0"):
            self.assertAlmostEqual(norm(ALONE % (8, "false"), 4, *words, clip=clip), mean, delta=1e-5 * mean)

    def results(self, stack, ranks, freeze=""):
        """What WRITTEN prints, once for each rank."""
        script = self.folder / "written.lua"
        script.write_text(WRITTEN.replace("STACK", stack).replace("FREEZE", freeze))
        done = orrery("run", "-n", ranks, script)
        self.assertEqual(done.code, 0, done.err)
        found = re.findall(r"result\t(\S+)\t(\S+)", done.out)
        self.assertEqual(len(found), 2 * ranks)
        return [tuple(map(float, pair)) for pair in found]

    def test_a_penalty_is_the_mean_of_those_of_the_copies(self):
        # After a step the copies have the weights a: 2 - (4 + 0.5 x) / 8 and b: 0.5 - (1 + 2 x) / 8 for x = 1 and 3.
        copies = [(2 - (4 + 0.5 * x) / 8, 0.5 - (1 + 2 * x) / 8, x) for x in (1, 3)]
        penalty = sum(a * a + b * b for a, b, _ in copies) / 2
        want = {(2 + 4.25, 4.25), (sum(a * b * x for a, b, x in copies) / 2 + penalty, penalty)}
        self.assertEqual(set(self.results("{ strategy.average { every = 2 } }", 2)), want)

    def test_copies_of_stages_begin_with_weights_that_were_written(self):
        whole = self.results("{ strategy.average { every = 1 } }", 2)
        staged = self.results("{ strategy.average { every = 1, size = 2 }, strategy.pipeline { size = 2 } }", 4)
        self.assertEqual(set(staged), set(whole))

    def test_weights_that_are_frozen_are_cut_with_the_others(self):
        freeze = "net.b.weight:freeze()"
        whole = self.results("{ strategy.average { every = 1 } }", 2, freeze)
        stack = "{ strategy.average { every = 1, size = 2 }, strategy.data {}, strategy.zero { stage = %d } }"
        for stage in (1, 2, 3):
            self.assertEqual(set(self.results(stack % stage, 4, freeze)), set(whole))

    def test_bad_options(self):
        done = self.run_stack("{ strategy.average{ every = 0 } }", 2)
        self.assertEqual(done.code, 1)
        self.assertIn("give at least 1", done.err)


if __name__ == "__main__":
    import sys
    unittest.main(argv=sys.argv[:1])
