# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pooling and batch statistics over ranks: the bits of one process where the batch, training state or
layers are dealt, running statistics among them; batchnorm's microbatches against PyTorch's formula.

Arguments: the build tree.
"""
import pathlib
import sys
import tempfile
import unittest

from close import assert_close, numbers
from program import HERE, SOURCE, orrery
from sweep import Sweeping, Training

ZERO = "{{ strategy.data{{}}, strategy.zero{{ stage = {} }} }}"
BF16 = "strategy.precision{ compute = 'bf16' }"
STAGES = "stages = { { 'stem', 'down' }, { 'mix', 'up', 'head' } }"
# The outputs of convolutions, and in a transposed one its inputs.
PLACED = """strategy.define{ name = "mine", class = "approx", transform = function(draft)
  draft:axis "line"
  for _, p in ipairs(draft:values "param") do
    if #p.dims == 4 then draft:place(p, "line", 1) end
  end end }{}"""
DEALT = [(2, "strategy.data{}"), (3, "strategy.data{}"), (4, "strategy.data{}"), (2, ZERO.format(1)), (4, ZERO.format(3)),
         (2, "{ strategy.data{}, strategy.recompute{} }")]


def training(stack, ranks, *words):
    return Training(stack, ranks, words, "convolution.lua")


class Convolution(Sweeping):
    def assert_same(self, stack, ranks, alone="nil", words=()):
        with self.subTest(stack=stack, ranks=ranks, words=words):
            one = self.sweep.lines(training(alone, 1, *words))
            self.assertEqual(len(one), 6)
            self.assertEqual(self.sweep.lines(training(stack, ranks, *words)), one)

    def test_has_the_bits_of_one_process(self):
        """The last microbatch of ten samples holds one, and what fills it up."""
        for words in ((), ("batch=10",), ("sync=1",), ("batch=10", "sync=1")):
            for ranks, stack in DEALT:
                self.assert_same(stack, ranks, words=words)

    def test_has_them_on_stages(self):
        for words in ((), ("batch=10",)):
            self.assert_same("strategy.pipeline{ size = 2 }", 2, words=words)
            self.assert_same(f"{{ strategy.pipeline{{ {STAGES}, schedule = 'zb1' }}, strategy.data{{}} }}", 4, words=words)

    def test_has_them_in_16_bits(self):
        for ranks, stack in ((2, f"{{ {BF16}, strategy.data{{}} }}"),
                             (3, f"{{ {BF16}, strategy.data{{}}, strategy.zero{{ stage = 2 }} }}")):
            self.assert_same(stack, ranks, BF16)

    def test_16_bits_are_near_32(self):
        """And what the layers compute is of 16 bits, also where their gradients are functions of their own."""
        short, long = (self.sweep.lines(training(stack, 1)) for stack in (BF16, "nil"))
        for got, want in zip(short[:-1], long[:-1], strict=True):
            for x, y in zip(numbers(got), numbers(want), strict=True):
                self.assertLess(abs(x - y), 0.02 * abs(y), f"{got}: in f32 {want}")
        script = pathlib.Path(self.folder.name) / "short.lua"
        script.write_text((HERE / "convolution.lua").read_text().replace("strategy = STACK", f"strategy = {BF16}"))
        plan = orrery("run", "--profile", script).out
        for op in ("matmul bf16", "fold bf16"):
            self.assertIn(op, plan)
        self.assertNotRegex(plan, r"matmul \[|fold \[")

    def test_channels_are_cut(self):
        """Sums over cut channels are in the order of the chunks."""
        for ranks in (2, 4):
            self.assert_same("strategy.tensor{ chunks = 4 }", ranks, "strategy.tensor{ chunks = 4 }")
        for stack in ("strategy.tensor{}", PLACED):
            for words in ((), ("sync=1",)):
                with self.subTest(stack=stack, words=words):
                    lines = self.sweep.lines(training(stack, 2, *words))
                    assert_close(self, lines, self.sweep.lines(training("nil", 1, *words)))

    def test_statistics_of_the_whole_batch_need_it_in_one_call(self):
        script = pathlib.Path(self.folder.name) / "convolution.lua"
        script.write_text((HERE / "convolution.lua").read_text().replace("strategy = STACK", "strategy = strategy.pipeline{}"))
        done = orrery("run", "-n", 2, script, "sync=1")
        self.assertEqual(done.code, 1)
        self.assertIn("samples read what is made of the whole batch here (a sum or mean over it), but strategy.pipeline",
                      done.err)

    def test_resnet_trains(self):
        tiny = ("width=4", "blocks=1", "size=8", "images=24", "batch=12", "microbatches=4", "steps=4", "every=2")
        for sync in ("sync=0", "sync=1"):
            found = [orrery("run", "-n", ranks, SOURCE / "examples/resnet.lua", *tiny, sync) for ranks in (1, 2, 3)]
            self.assertEqual([done.code for done in found], [0, 0, 0], found[0].err)
            digests = [done.out.splitlines()[-1] for done in found]
            self.assertEqual(digests, digests[:1] * 3)
            self.assertRegex(digests[0], "digest [0-9a-f]{32}")

    def test_alexnet_has_a_column_on_each_rank(self):
        tiny = ("width=3", "dense=8", "size=8", "images=24", "batch=12", "steps=4", "every=2")
        found = [orrery("run", "-n", ranks, SOURCE / "examples/alexnet.lua", *tiny) for ranks in (1, 2)]
        self.assertEqual([done.code for done in found], [0, 0], found[0].err)
        self.assertEqual(*(done.out.splitlines()[-1] for done in found))
        self.assertRegex(found[0].out.splitlines()[-1], "digest [0-9a-f]{32}")
        plan = orrery("plan", "-n", 2, SOURCE / "examples/alexnet.lua", *tiny)
        self.assertEqual(plan.code, 0, plan.err)

    def test_resnet_reads_cifar(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, count in (("data_batch_1.bin", 20), ("data_batch_2.bin", 10), ("test_batch.bin", 10)):
                images = (bytes([i % 10]) + bytes((i * 37 + k) % 256 for k in range(3072)) for i in range(count))
                (pathlib.Path(folder) / name).write_bytes(b"".join(images))
            words = (f"data={folder}", "width=4", "blocks=1", "batch=12", "microbatches=4", "steps=3", "every=1")
            found = [orrery("run", "-n", ranks, SOURCE / "examples/resnet.lua", *words) for ranks in (1, 2)]
        self.assertEqual([done.code for done in found], [0, 0], found[0].err)
        self.assertIn("in evaluation: loss", found[0].out)
        self.assertEqual(*(done.out.splitlines()[-1] for done in found))


class Statistics(Sweeping):
    def test_running_ones_are_those_of_microbatches(self):
        """One step from running statistics of 0 and 1: the mean over the samples of what each one's microbatch has,
        of n elements times n / (n - 1) for the variance."""
        script = pathlib.Path(self.folder.name) / "statistics.lua"
        rows = [[1.0, 2.0], [3.0, 5.0], [2.0, 2.0], [7.0, -1.0], [4.0, 4.0]]  # two samples in a microbatch, the last one
        script.write_text("""local orrery = require "orrery"
local nn = orrery.nn
local norm = nn.batchnorm(1, { momentum = 0.25 })
local run = orrery.compile(function(b) return (norm(b.x) * b.x):mean() end,
  { params = norm, optimizer = orrery.optim.sgd { lr = 0 }, microbatches = 3, strategy = orrery.strategy.data {} })
run:step { x = orrery.tensor({ { { 1, 2 } }, { { 3, 5 } }, { { 2, 2 } }, { { 7, -1 } }, { { 4, 4 } } }, "f32") }
orrery.log("%.9g %.9g", norm.running_mean:read():tolist()[1], norm.running_var:read():tolist()[1])
""")
        mean = variance = 0.0
        for first in (0, 2, 4):
            part = [v for row in rows[first:first + 2] for v in row]
            weight = len(rows[first:first + 2]) / len(rows)
            middle = sum(part) / len(part)
            mean += weight * middle
            variance += weight * sum((v - middle) ** 2 for v in part) / (len(part) - 1)
        for ranks in (1, 2, 3):
            found = [float(x) for x in orrery("run", "-n", ranks, script).out.split()]
            self.assertAlmostEqual(found[0], 0.25 * mean, delta=1e-6)
            self.assertAlmostEqual(found[1], 0.75 + 0.25 * variance, delta=1e-6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
