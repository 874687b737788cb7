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

from program import HERE, orrery

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

    def start(self, command, stack, ranks, *words):
        script = pathlib.Path(self.folder.name) / "strategies.lua"
        script.write_text((HERE / "strategies.lua").read_text().replace("STACK", stack))
        done = orrery(command, "-n", ranks, script, *words)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def run_stack(self, stack, ranks, *words):
        return re.findall(r"^((?:step \d+ loss|eval|digest) .*?)(?:  [\d.]+ ms)?$",
                          self.start("run", stack, ranks, *words), re.MULTILINE)

    def test_is_near_f32_but_not_it(self):
        full = self.run_stack("nil", 1)
        for stack, bound in ((LOW, 5e-3), (F16, 1e-3), (WIDE, 5e-3), (NARROW, 1e-3)):
            low = self.run_stack(stack, 1)
            self.assertEqual(len(low), len(full))
            self.assertNotEqual(low, full)
            for got, want in zip(low[:-1], full[:-1]):
                x, y = (float(re.search(r"(?:loss|eval) (\S+)", line)[1]) for line in (got, want))
                self.assertLess(abs(x - y), bound * y)

    def test_has_the_same_bits_on_any_ranks(self):
        for how in (LOW, F16, WIDE, NARROW):
            alone = self.run_stack(how, 1)
            for ranks, stack in STACKS:
                stack = stack.replace(LOW, how)
                with self.subTest(ranks=ranks, stack=stack):
                    self.assertEqual(self.run_stack(stack, ranks), alone)

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

    def test_all_gradients_travel_in_the_dtype_of_the_wire(self):
        for how, dtype, bytes_of_one in ((LOW, "bf16", 2), (WIDE, "f32", 4), (NARROW, "bf16", 2)):
            with self.subTest(how=how):
                plan = self.start("plan", f"{{ strategy.data{{}}, {how} }}", 2, "model=mlp")
                sent = re.findall(r"tree all_reduce +(\d+) x (\w+) .* sends (\d+) bytes", plan)
                self.assertTrue(sent, plan)
                for elements, got, sends in sent:
                    if int(elements) > 100:  # the loss and its weight are apart
                        self.assertEqual(got, dtype)
                    self.assertEqual(int(sends), int(elements) * {"f32": 4, "bf16": 2}[got])

    def test_what_cannot_travel_so_is_refused(self):
        for how, why in (('strategy.precision{ wire = "f8" }', "wire 'f8': there are bf16, f16 and f32"),
                         ('strategy.precision{ wire = "f16" }', "in the other 16-bit dtype")):
            script = pathlib.Path(self.folder.name) / "refused.lua"
            script.write_text((HERE / "strategies.lua").read_text().replace("STACK", f"{{ strategy.data{{}}, {how} }}"))
            done = orrery("run", "-n", 2, script)
            self.assertEqual(done.code, 1, done.err)
            self.assertRegex(done.err, r"refused.lua:\d+: .*" + re.escape(why))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
