# SPDX-License-Identifier: Apache-2.0
"""strategy.precision: near the losses of f32, the same bits on any ranks and in any EXACT stack, and a
ledger of bytes per parameter that is the textbook's.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery, sampled
from sweep import Sweep, Training

LOW = "strategy.precision{}"
F16 = 'strategy.precision{ compute = "f16", loss_scale = 1024 }'
WIDE = 'strategy.precision{ wire = "f32" }'
NARROW = 'strategy.precision{ compute = "f32", wire = "bf16" }'
STACKS = [
    (2, f"{{ strategy.data{{}}, {LOW} }}"),
    (3, f"{{ {LOW}, strategy.data{{}} }}"),
    (2, f"{{ strategy.data{{}}, strategy.zero{{}}, {LOW} }}"),
    (3, f"{{ strategy.data{{}}, strategy.zero{{ stage = 3 }}, {LOW} }}"),
    (1, f"{{ {LOW}, strategy.accumulate{{}} }}"),
    (1, f"{{ {LOW}, strategy.recompute{{}} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, {LOW}, strategy.recompute{{}} }}"),
]


class Precision(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.sweep = Sweep(pathlib.Path(cls.folder.name))

    def start(self, command, stack, ranks, *words):
        script = pathlib.Path(self.folder.name) / "strategies.lua"
        script.write_text((HERE / "strategies.lua").read_text().replace("STACK", stack))
        done = orrery(command, "-n", ranks, script, *words)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def run_stack(self, stack, ranks):
        return self.sweep.lines(Training(stack, ranks))

    def test_is_near_f32_but_not_it(self):
        full = self.run_stack("nil", 1)
        for stack, bound in ((LOW, 5e-3), (F16, 1e-3), (WIDE, 5e-3), (NARROW, 1e-3)):
            low = self.run_stack(stack, 1)
            self.assertEqual(len(low), len(full))
            self.assertNotEqual(low, full)
            for got, want in zip(low[:11], full[:11]):
                x, y = (float(re.search(r"(?:loss|eval) (\S+)", line)[1]) for line in (got, want))
                self.assertLess(abs(x - y), bound * y)

    def test_has_the_same_bits_on_any_ranks(self):
        cases = [(how, ranks, stack.replace(LOW, how)) for how in (LOW, F16, WIDE, NARROW)
                 for ranks, stack in sampled(STACKS)]
        self.sweep.run(Training(stack, ranks) for _, ranks, stack in cases)
        for how, ranks, stack in cases:
            with self.subTest(ranks=ranks, stack=stack):
                self.assertEqual(self.run_stack(stack, ranks), self.run_stack(how, 1))

    def ledger(self, stack, *words):
        line = re.search(r"^  ledger  (.*) = ([\d.]+) bytes for each of (\d+) parameters$",
                         self.start("plan", stack, 1, *words), re.MULTILINE)
        return re.findall(r"([\d.]+ [a-z ]+?)(?: \+|$)", line[1]), float(line[2])

    def test_ledger(self):
        mlp = ("model=mlp",)  # no parameter is used twice
        self.assertEqual(self.ledger("nil", *mlp), (["4.00 parameter", "4.00 gradient", "8.00 state"], 16.0))
        self.assertEqual(self.ledger("nil", *mlp, "optimizer=sgd"), (["4.00 parameter", "4.00 gradient"], 8.0))
        for stack in (LOW, F16):
            self.assertEqual(self.ledger(stack, *mlp),
                             (["4.00 parameter", "2.00 compute copy", "2.00 gradient", "8.00 state"], 16.0))
        self.assertEqual(self.ledger(WIDE, *mlp),
                         (["4.00 parameter", "2.00 compute copy", "4.00 gradient", "8.00 state"], 18.0))
        self.assertEqual(self.ledger(NARROW, *mlp), (["4.00 parameter", "2.00 gradient", "8.00 state"], 14.0))

    def test_gradients_travel_in_the_dtype_of_the_wire(self):
        for how, dtype, others in ((LOW, "bf16", {"f32"}), (WIDE, "f32", set()), (NARROW, "bf16", {"f32"})):
            with self.subTest(how=how):
                plan = self.start("plan", f"{{ strategy.data{{}}, {how} }}", 2, "model=mlp")
                sent = re.findall(r"tree all_reduce +(\d+) x (\w+) .* sends (\d+) bytes", plan)
                self.assertEqual(max(sent, key=lambda bucket: int(bucket[0]))[1], dtype)
                self.assertEqual({got for _, got, _ in sent} - {dtype}, others)  # the loss is in f32
                for elements, got, sends in sent:
                    self.assertEqual(int(sends), int(elements) * {"f32": 4, "bf16": 2}[got])

    def test_what_cannot_travel_so_is_refused(self):
        for how, why in (('strategy.precision{ wire = "f8" }', "wire 'f8': there are bf16, f16 and f32"),
                         ('strategy.precision{ wire = "f16" }', "in the other 16-bit dtype")):
            script = pathlib.Path(self.folder.name) / "refused.lua"
            script.write_text((HERE / "strategies.lua").read_text().replace("STACK", f"{{ strategy.data{{}}, {how} }}"))
            done = orrery("run", "-n", 2, script)
            self.assertEqual(done.code, 1, done.err)
            self.assertRegex(done.err, r"refused.lua:\d+: .*" + re.escape(why))

    def test_a_gradient_that_no_sum_makes_is_refused(self):
        """A factor on a weight makes its gradient a multiple of a sum, which a cast would round before it widens."""
        script = pathlib.Path(self.folder.name) / "scaled.lua"
        script.write_text("""
            local orrery = require "orrery"
            local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
            local Scaled = nn.module("Scaled", function(m)
              m.inner = nn.linear(4, 4, { bias = false })
              return function(x) return x:matmul(m.inner.weight:transpose(1, 2) * 0.5) end
            end)
            local model = Scaled()
            local run = orrery.compile(function(b) return (model(b.x) - b.y):abs():mean() end, {
              params = model, optimizer = optim.sgd { lr = 0.1 },
              strategy = { strategy.precision { wire = "f32" } } })
            local x = orrery.tensor({ { 1.5, 2, 3, 4 }, { 4, 3, 2, 1 } })
            print(run:step { x = x, y = x }:mean())
        """)
        done = orrery("run", script)
        self.assertEqual(done.code, 1, done.out + done.err)
        self.assertRegex(done.err, r"the gradient of 'inner.weight' comes from .*, which cannot store it as f32")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
