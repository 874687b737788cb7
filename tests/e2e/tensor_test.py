# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism end to end: one process' losses to rounding, alone and in stacks; the stack's other
strategies stay EXACT, so that every stack over the same tensor ranks has the same bits.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from plan_is_truth_test import counted, planned
from program import HERE, orrery

# What follows `strategy.tensor{ size = N`, and stacks with it on N times as many ranks: (factor, stack).
KINDS = ["", ", sequence = true", ", vocab = false", ", sequence = true, vocab = false",
         ', column = { "blocks.*.mlp.1" }, row = { "blocks.*.mlp.3" }, vocab = false']
STACKS = [
    (2, "{ strategy.data{ size = 2 }, TENSOR }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{}, TENSOR, strategy.accumulate{} }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{ stage = 3 }, TENSOR }"),
    (1, "{ TENSOR, strategy.recompute{} }"),
    (2, "{ strategy.pipeline{ size = 2 }, TENSOR }"),
    (4, '{ strategy.pipeline{ size = 2, schedule = "zb1" }, strategy.data{ size = 2 }, strategy.zero{}, TENSOR, '
        "strategy.recompute{} }"),
]


def numbers(line):
    """The loss and the norm of a step's line, or the loss of an evaluation's."""
    return [float(x) for x in re.findall(r"(?:loss|norm|eval) (\S+)", line)]


class Tensor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.template = (HERE / "strategies.lua").read_text()
        cls.expected = {}

    def start(self, command, stack, ranks, *words):
        script = pathlib.Path(self.folder.name) / "strategies.lua"
        script.write_text(self.template.replace("STACK", stack))
        return orrery(command, "-n", ranks, script, *words)

    def run_stack(self, stack, ranks, *words):
        done = self.start("run", stack, ranks, *words)
        self.assertEqual(done.code, 0, done.err)
        return [re.sub(r"  [\d.]+ ms$", "", line)
                for line in re.findall(r"^(?:step \d+ loss|eval|digest) .*$", done.out, re.MULTILINE)]

    def one_process(self, *words):
        if words not in self.expected:
            self.expected[words] = self.run_stack("nil", 1, *words)
        return self.expected[words]

    def assert_close(self, lines, words):
        expected = self.one_process(*words)
        self.assertEqual(len(lines), len(expected))
        for got, want in zip(lines[:-1], expected[:-1]):  # the digest is the last
            for x, y in zip(numbers(got), numbers(want), strict=True):
                self.assertLess(abs(x - y), 1e-5 * abs(y), f"{got}: one process has {want}")

    def test_trains_as_one_process(self):
        for size, kinds in ((2, KINDS), (4, KINDS[:2])):
            for kind in kinds:
                with self.subTest(kind=kind, size=size):
                    words = ("model=gpt", "optimizer=adamw")
                    self.assert_close(self.run_stack(f"strategy.tensor{{ size = {size}{kind} }}", size, *words), words)

    def test_other_models_and_optimizers(self):
        for words in (("model=mlp", "optimizer=sgd"), ("model=gpt", "optimizer=lua")):
            with self.subTest(words=words):
                self.assert_close(self.run_stack("strategy.tensor{}", 2, *words), words)

    def test_stacks_have_the_bits_of_tensor_alone(self):
        for kind in KINDS[:2]:
            tensor = f"strategy.tensor{{ size = 2{kind} }}"
            alone = self.run_stack(tensor, 2)
            for factor, stack in STACKS:
                with self.subTest(stack=stack, kind=kind):
                    self.assertEqual(self.run_stack(stack.replace("TENSOR", tensor), 2 * factor), alone)

    def test_saved_under_one_continued_under_another(self):
        saved = pathlib.Path(self.folder.name) / "checkpoint"
        whole = self.run_stack("strategy.tensor{}", 2)
        self.run_stack("strategy.tensor{}", 2, "stop=4", f"save={saved}")
        self.assertEqual(self.run_stack("strategy.tensor{}", 2, f"load={saved}"), whole[4:])
        for stack, ranks in (("strategy.tensor{ sequence = true }", 4), ("strategy.data{}", 2)):
            with self.subTest(stack=stack):
                lines = self.run_stack(stack, ranks, f"load={saved}")
                for got, want in zip(lines[:-1], whole[4:-1]):
                    for x, y in zip(numbers(got), numbers(want), strict=True):
                        self.assertLess(abs(x - y), 1e-5 * y)

    def test_plan_is_truth(self):
        text = (HERE / "counters.lua").read_text().replace("microbatches = args.microbatches",
                                                           "microbatches = args.microbatches, strategy = STACK")
        script = pathlib.Path(self.folder.name) / "counters.lua"
        for stack, ranks in (("strategy.tensor{}", 2), ("strategy.tensor{ sequence = true }", 2),
                             ("{ strategy.data{ size = 3 }, strategy.tensor{ size = 2, vocab = false } }", 6)):
            with self.subTest(stack=stack, ranks=ranks):
                script.write_text(text.replace("STACK", stack.replace("strategy.", "orrery.strategy.")))
                plan = orrery("plan", "-n", ranks, script, cwd=HERE)
                self.assertEqual((plan.code, plan.err), (0, ""))
                self.assertRegex(plan.out, r"predicted by tensor: [1-9]\d* bytes sent, as counted")
                self.assertNotIn("but counted", plan.out)
                run = orrery("run", "-n", ranks, script, cwd=HERE)
                self.assertEqual(run.code, 0, run.err)
                self.assertEqual(counted(run.out), planned(plan.out), plan.out)

    def test_refuses_what_cannot_be_cut(self):
        for stack, ranks, texts in [
            ("strategy.tensor{}", 3, ["which size 3 does not divide: the nearest that do are 2 and 4"]),
            ("strategy.tensor{}", 8, ["4 heads do not divide over the 8 ranks", "choose a size of 1, 2, 4"]),
            ('strategy.tensor{ column = "blocks.*.mpl" }', 2, ["column 'blocks.*.mpl' matches no linear layer",
                                                              "blocks.1.qkv"]),
            ("{ strategy.tensor{ size = 2 }, strategy.tensor{ size = 2 } }", 4, ["cannot join a stack"]),
        ]:
            with self.subTest(stack=stack, ranks=ranks):
                done = self.start("run", stack, ranks)
                self.assertEqual(done.code, 1)
                for text in texts:
                    self.assertIn(text, done.err)
                self.assertRegex(done.err, r"strategies\.lua:\d+:")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
