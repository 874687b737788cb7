# SPDX-License-Identifier: Apache-2.0
"""strategy.precision: near the losses of f32, the same bits on any ranks and in any EXACT stack, and a
ledger of bytes per parameter that is the textbook's.

Arguments: the build tree.
"""
import ctypes
import pathlib
import re
import sys
import unittest

from program import HERE, SOURCE, orrery, sampled
from sweep import Sweeping, Training

LOW = "strategy.precision{}"
F16 = 'strategy.precision{ compute = "f16", loss_scale = 1024 }'
WIDE = 'strategy.precision{ wire = "f32" }'
NARROW = 'strategy.precision{ compute = "f32", wire = "bf16" }'
THREE = "strategy.tensor{ size = 2, chunks = 2 }, strategy.pipeline{ size = 2 }, strategy.data{}"
STACKS = [
    (2, f"{{ strategy.data{{}}, {LOW} }}"),
    (3, f"{{ {LOW}, strategy.data{{}} }}"),
    (2, f"{{ strategy.data{{}}, strategy.zero{{}}, {LOW} }}"),
    (3, f"{{ strategy.data{{}}, strategy.zero{{ stage = 3 }}, {LOW} }}"),
    (4, f"{{ strategy.data{{}}, strategy.zero{{ stage = 2, group = 2 }}, {LOW} }}"),
    (2, f"{{ strategy.data{{}}, strategy.zero{{ cut = \"tensor\" }}, {LOW} }}"),
    (2, f"{{ strategy.data{{}}, strategy.zero{{ stage = 2, offload = \"host\" }}, {LOW} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, strategy.zero{{}}, {LOW} }}"),
    (1, f"{{ {LOW}, strategy.accumulate{{}} }}"),
    (1, f"{{ {LOW}, strategy.recompute{{}} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, {LOW}, strategy.recompute{{}} }}"),
]


def may_use_amx():
    """Whether the CPU has AMX for bf16, and Linux gives its registers to a process that asks (arch_prctl)."""
    arch_prctl, request, tile_data = 158, 0x1023, 18
    return " amx_bf16" in orrery("doctor").out and ctypes.CDLL(None).syscall(arch_prctl, request, tile_data) == 0


class Precision(Sweeping):
    def start(self, command, stack, ranks, *words):
        script = pathlib.Path(self.folder.name) / "strategies.lua"
        script.write_text((HERE / "strategies.lua").read_text().replace("STACK", stack))
        done = orrery(command, *["--details"] * (command == "plan"), "-n", ranks, script, *words)
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

    def test_fast_numerics(self):
        """Of bf16 by AMX, in another order, where the CPU has it; the same bits again elsewhere."""
        exact, fast = (self.start("run", LOW, 1, f"numerics={numerics}").splitlines() for numerics in ("exact", "fast"))
        self.assertEqual(len(exact), len(fast))
        self.assertEqual(exact == fast, not may_use_amx())
        for got, want in zip(fast, exact):
            if found := re.search(r"(?:loss|eval) (\S+)", want):
                x, y = float(re.search(r"(?:loss|eval) (\S+)", got)[1]), float(found[1])
                self.assertLess(abs(x - y), 5e-3 * y)

    def test_has_the_same_bits_on_any_ranks(self):
        cases = [(how, ranks, stack.replace(LOW, how)) for how in (LOW, F16, WIDE, NARROW)
                 for ranks, stack in sampled(STACKS)]
        self.sweep.run(Training(stack, ranks) for _, ranks, stack in cases)
        for how, ranks, stack in cases:
            with self.subTest(ranks=ranks, stack=stack):
                self.assertEqual(self.run_stack(stack, ranks), self.run_stack(how, 1))

    def ledger(self, stack, *words):
        """What there is of, and the sum but for some bytes of each tensor, such as a count of its updates."""
        line = re.search(r"^  ledger  (.*) = ([\d.]+) bytes for each of (\d+) parameters$",
                         self.start("plan", stack, 1, *words), re.MULTILINE)
        parts = re.findall(r"([\d.]+) ([a-z ]+?)(?: \+|$)", line[1])
        return [f"{float(bytes_):.1f} {what}" for bytes_, what in parts], round(float(line[2]), 1)

    def test_ledger(self):
        mlp = ("model=mlp",)  # no parameter is used twice
        self.assertEqual(self.ledger("nil", *mlp), (["4.0 parameter", "4.0 gradient", "8.0 state"], 16.0))
        self.assertEqual(self.ledger("nil", *mlp, "optimizer=sgd"), (["4.0 parameter", "4.0 gradient"], 8.0))
        for stack in (LOW, F16):
            self.assertEqual(self.ledger(stack, *mlp),
                             (["4.0 parameter", "2.0 compute copy", "2.0 gradient", "8.0 state"], 16.0))
        self.assertEqual(self.ledger(WIDE, *mlp),
                         (["4.0 parameter", "2.0 compute copy", "4.0 gradient", "8.0 state"], 18.0))
        self.assertEqual(self.ledger(NARROW, *mlp), (["4.0 parameter", "2.0 gradient", "8.0 state"], 14.0))

    def test_pieces_are_those_of_the_paper(self):
        """Rajbhandari et al., SC'20, section 5: of bytes for each parameter, Adam in mixed precision has 2 + 2 + 12/N,
        2 + 14/N and 16/N. Gradients of stages 2 and 3 are beside these what travels together: two buckets, two units.
        """
        script = pathlib.Path(self.folder.name) / "gpt.lua"
        source = (SOURCE / "examples" / "gpt.lua").read_text()
        self.assertIn("strategy = strategy.data {},", source)
        words = ("dim=256", "heads=4", "layers=4", "ctx=16", "tie=false", "steps=1")
        for stage, copy in ((1, lambda n: 2), (2, lambda n: 2), (3, lambda n: 2 / n)):
            zero = f"strategy.zero {{ stage = {stage}{', bucket = 200000' if stage == 2 else ''} }}"
            script.write_text(source.replace("strategy.data {}", f"{{ strategy.data {{}}, {zero}, {LOW} }}"))
            for ranks in (2, 4, 64):
                with self.subTest(stage=stage, ranks=ranks):
                    done = orrery("plan", "--details", "-n", ranks, script, *words, f"batch={ranks}", f"microbatches={ranks}")
                    self.assertEqual(done.code, 0, done.err)
                    parameters = int(re.search(r"(\d+) parameters$", done.out, re.MULTILINE)[1])

                    def each(name, which=max):
                        return which(map(int, re.findall(rf"^    {name} +(\d+)", done.out, re.MULTILINE))) / parameters
                    for which in (min, max):
                        self.assertAlmostEqual(each("parameter", which), 4 / ranks, delta=0.02)
                        self.assertAlmostEqual(each("state", which), 8 / ranks, delta=0.04)
                        self.assertAlmostEqual(each("compute copy", which), copy(ranks), delta=0.01)
                    if stage == 1:
                        self.assertAlmostEqual(each("buckets"), 2, delta=0.02)
                    else:
                        self.assertLess(each("buckets"), 1.4)

    def test_copies_follow_their_parameters(self):
        """Written by the script, loaded from a checkpoint, on other ranks too: forward reads what they are then."""
        template = (HERE / "copies.lua").read_text()
        at = pathlib.Path(self.folder.name) / "at"

        def lines(ranks, stack, *words):
            script = pathlib.Path(self.folder.name) / "copies.lua"
            script.write_text(template.replace("STACK", stack))
            done = orrery("run", "-n", ranks, script, f"at={at}", *words)
            self.assertEqual(done.code, 0, done.err)
            return done.out.splitlines()
        for words in ((), ("case=penalty",)):
            alone = lines(1, LOW, *words)
            self.assertEqual(alone[-2:-1], alone[-4:-3])  # the step after the load is the one after the save
            for options, ranks in (("stage = 1", 2), ("stage = 2", 3), ("stage = 3", 2), ('offload = "host"', 2)):
                with self.subTest(options=options, words=words):
                    stack = f"{{ strategy.data{{}}, strategy.zero{{ {options} }}, {LOW} }}"
                    self.assertEqual(lines(ranks, stack, *words), alone)
            alone = lines(1, f"{{ strategy.tensor{{ size = 1, chunks = 2 }}, {LOW} }}", *words)
            for stage in (1, 3):
                with self.subTest("three axes", stage=stage, words=words):
                    zero = f"strategy.zero{{ stage = {stage} }}"
                    self.assertEqual(lines(8, f"{{ {THREE}, {zero}, {LOW} }}", *words), alone)

    def test_copies_beside_three_axes(self):
        """The parameters of this model that one stage reads, all but the tied one, lie in pieces."""
        plan = self.start("plan", f"{{ {THREE}, strategy.zero{{}}, {LOW} }}", 8)
        for name, least, most in (("parameter", 2, 3), ("compute copy", 1.5, 2)):
            found = re.findall(rf"^  ledger .*?([\d.]+) {name} ", plan, re.MULTILINE)
            self.assertEqual(len(found), 4)
            for each in map(float, found):
                self.assertTrue(least <= each <= most, f"{each} {name}")

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
        for how, why in (('strategy.precision{ wire = "f8" }', "there is no wire 'f8': give bf16"),
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
