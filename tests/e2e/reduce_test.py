# SPDX-License-Identifier: Apache-2.0
"""reduce = "fast" of compile: the losses of canonical sums but for rounding, one gradient for all microbatches, and
plans that stay true.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

DATA, LOOP = "strategy.data {}", "strategy.accumulate {}"
PIPELINE = 'strategy.pipeline { size = 2, schedule = "1f1b" }, strategy.data {}'


def each(more="stage = 3"):
    """ZeRO whose exchanges are those of each microbatch."""
    return f"strategy.zero {{ {more}, each = true }}"


TENSOR_CUT = each('stage = 3, cut = "tensor"')
ZBV = 'strategy.pipeline { size = 2, schedule = "zbv" }'
EACH = (
    (2, f"{DATA}, {each()}, {LOOP}"), (2, f"{DATA}, {each('stage = 2')}, {LOOP}"), (2, f"{DATA}, {TENSOR_CUT}, {LOOP}"),
    (4, f"{DATA}, {each('stage = 3, group = 2')}, {LOOP}"), (4, f"{PIPELINE}, {each()}"),
    (4, f"{ZBV}, {DATA}, {each('stage = 3, reshard = 0')}, strategy.recompute {{}}"),
    (4, f"strategy.tensor {{ size = 2 }}, {DATA}, {each()}, {LOOP}"),
)


class Reduce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = pathlib.Path(folder.name, "reduce.lua")

    def command(self, command, ranks, stack, reduce, words=()):
        text = (HERE / "strategies.lua").read_text()
        self.script.write_text(text.replace("strategy = STACK", f'strategy = {{ {stack} }}, reduce = "{reduce}"'))
        return orrery(command, *["--details"] * (command == "plan"), "-n", ranks, self.script, *words)

    def losses(self, ranks, stack, reduce, words=()):
        """Losses and gradient norms. The script itself fails if it sends other bytes than predicted."""
        run = self.command("run", ranks, stack, reduce, ["eval=false", *words])
        self.assertEqual(run.code, 0, run.err)
        return [float(x) for line in re.findall(r"^step \d+ loss (\S+) norm (\S+)$", run.out, re.M) for x in line]

    def planned_gradients(self, ranks, stack, reduce, words=(), what="full gradients|gradient"):
        """The bytes of gradients for each parameter; `what`: those that leave in pieces, and those that stay."""
        plan = self.command("plan", ranks, stack, reduce, ["tie=false", *words])
        self.assertEqual(plan.code, 0, plan.err)
        self.assertEqual("  reduce  fast" in plan.out, reduce == "fast")
        return max(sum(float(x) for x in re.findall(rf"([\d.]+) (?:{what})\b", line))
                   for line in re.findall(r"^  ledger .*", plan.out, re.MULTILINE))

    def test_has_the_losses_of_canonical_sums_but_for_rounding(self):
        odd = ["batch=13", "microbatches=8"]
        for ranks, stack, words in (
                (1, DATA, ()), (2, DATA, ()), (3, DATA, odd), (1, f"{DATA}, {LOOP}", ()), (3, f"{DATA}, {LOOP}", odd),
                (2, f"{DATA}, strategy.zero {{ stage = 1 }}", ()),
                (3, f"{DATA}, strategy.zero {{ stage = 3 }}, {LOOP}", odd), (2, PIPELINE, ()), (4, PIPELINE, odd),
                (3, "strategy.server { dedicated = 1 }", odd), (2, "strategy.average { every = 2 }", ()),
                (2, f"strategy.tensor {{}}, {LOOP}", ()), *((n, stack, ()) for n, stack in EACH)):
            with self.subTest(ranks=ranks, stack=stack):
                exact = self.losses(ranks, stack.replace(", each = true", ""), "canonical", words)
                fast = self.losses(ranks, stack, "fast", words)
                self.assertEqual(len(exact), 20)
                self.assertNotEqual(exact, fast)
                for a, b in zip(exact, fast):
                    self.assertAlmostEqual(a, b, delta=1e-4)

    def test_exchanges_for_each_microbatch_keep_less(self):
        def planned(zero, kept):
            stack = f"{DATA}, {zero}, {LOOP}"
            plan = self.command("plan", 4, stack, "fast", ["batch=32", "microbatches=16"]).out
            peak = max(int(n) for n in re.findall(r"arena peak +(\d+)", plan))
            return peak, self.planned_gradients(4, stack, "fast", ["batch=32", "microbatches=16"], kept)
        whole, once = planned("strategy.zero { stage = 3 }", "full gradients")
        in_parts, of_each = planned(each(), "gradient")
        self.assertGreater(once, 15)  # f32 of all parameters, of which the rank has a fourth
        self.assertLess(of_each, 5)   # of its own
        self.assertLess(in_parts, whole)

    def test_a_penalty_on_gathered_weights_is_computed_once(self):
        """Of each rank's 16 microbatches forward and backward gather a unit; the penalty gathers it once."""
        plan = self.command("plan", 2, f"{DATA}, {each()}, {LOOP}", "fast",
                            ["model=mlp", "penalty=true", "batch=64", "microbatches=32"])
        [rank] = re.findall(r"^rank 0\n.*?(?=^rank|\Z)", plan.out, re.DOTALL | re.MULTILINE)
        times = re.findall(r"^    MLP\.\w +(?:(\d+) x )?all_gather", rank, re.MULTILINE)
        self.assertEqual(sorted(int(n or 1) for n in times), [1, 16 + 16])

    def test_refuses_exchanges_for_each_microbatch(self):
        odd = ["batch=12", "microbatches=3"]
        for stack, reduce, words, why in (
                (f"{DATA}, {each()}", "fast", (),
                 "all of a rank's run in one call: add a strategy that runs them one after another"),
                (f"{DATA}, {each('stage = 2')}, {LOOP}", "canonical", (), 'only under reduce = "fast"'),
                (f"{DATA}, {each('stage = 1')}, {LOOP}", "fast", (), "each is for stages 2 and 3"),
                (f"{DATA}, {each()}, {LOOP}", "fast", odd, "3 are not the same number on each of the 2 ranks")):
            with self.subTest(stack=stack):
                run = self.command("run", 2, stack, reduce, words)
                self.assertNotEqual(run.code, 0)
                self.assertIn(why, run.err)

    def test_keeps_one_gradient_for_all_microbatches(self):
        for ranks, stack in ((1, f"{DATA}, {LOOP}"), (2, PIPELINE), (2, f"{DATA}, strategy.zero {{}}, {LOOP}")):
            with self.subTest(stack=stack):
                nodes, one = (self.planned_gradients(ranks, stack, reduce) for reduce in ("canonical", "fast"))
                self.assertGreater(nodes, 11)  # 4 bytes for each tree node that waits
                self.assertLess(one, 4.5)

    def test_gives_the_same_bits_again(self):
        stack = f"{DATA}, strategy.zero {{ stage = 3 }}, {LOOP}"
        self.assertEqual(self.losses(3, stack, "fast"), self.losses(3, stack, "fast"))

    def test_is_kept_in_checkpoints(self):
        for saved, other in (("fast", "canonical"), ("canonical", "fast")):
            at = self.script.parent / saved
            self.assertEqual(self.command("run", 2, DATA, saved, ["eval=false", "stop=2", f"save={at}"]).code, 0)
            for now in (saved, other):
                run = self.command("run", 2, DATA, now, ["eval=false", f"load={at}"])
                self.assertEqual(run.code, 0, run.err)
                told = re.findall(r'had reduce = "(\w+)", this one has "(\w+)"', run.err)
                self.assertEqual(told, [] if now == saved else [(saved, now)])

    def test_refuses_what_it_cannot_be(self):
        for stack, reduce, why in (
                (DATA, "quick", "reduce is 'quick': write \"canonical\" or \"fast\""),
                ('strategy.server { mode = "async" }', "fast", "each rank takes steps of its own: leave reduce out")):
            run = self.command("run", 2, stack, reduce)
            self.assertNotEqual(run.code, 0)
            self.assertIn(why, run.err)
            self.assertIn("reduce.lua:", run.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
