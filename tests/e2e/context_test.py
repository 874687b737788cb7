# SPDX-License-Identifier: Apache-2.0
"""Context parallelism end to end: one process' losses to rounding, alone and in stacks, with attention by queries
and by heads; with fixed chunks of time the bits of one process. The script fails on a rank that sends other bytes
than planned.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, SOURCE, orrery, sampled
from sweep import Sweep, Training

WORDS = ("model=gpt", "steps=9", "drop=0")
KINDS = ["", "kind = 'ulysses', "]

# Stacks on so many times the ranks of CONTEXT that have its bits: what else is in them is EXACT.
STACKS = [
    (2, "{ strategy.data{ size = 2 }, CONTEXT }"),
    (2, "{ CONTEXT, strategy.data{} }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{}, CONTEXT, strategy.accumulate{} }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{ stage = 3 }, CONTEXT }"),
    (1, "{ CONTEXT, strategy.accumulate{} }"),
]

# Cuts time over two axes.
TWICE = """strategy.define{ name = "mine", class = "approx", transform = function(draft)
  draft:axis("a", 2) draft:axis("b", 2)
  for _, field in ipairs(draft:values "batch") do
    if #field.dims > 1 then draft:place(field, "a", 2) draft:place(field, "b", 2) end end end }{}"""

# Places what `strategy.context` does, on an axis of another name.
COPY = """strategy.define{ name = "mine", class = "approx", options = { size = 0 }, transform = function(draft, o)
  draft:axis("line", o.size)
  for _, field in ipairs(draft:values "batch") do
    if #field.dims > 1 then draft:place(field, "line", 2) end end end }"""


def own(body):
    return ('strategy.define{ name = "mine", class = "approx", transform = function(draft) local _, x, y = '
            'table.unpack(draft:values "batch") ' + body + " end }{}")


def numbers(line):
    """The loss and the norm of a step's line, or the loss of an evaluation's."""
    return [float(x) for x in re.findall(r"(?:loss|norm|eval) (\S+)", line)]


class Context(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.sweep = Sweep(pathlib.Path(cls.folder.name))

    def lines(self, stack, ranks, *words):
        """What it prints, but for what is computed outside of the run."""
        return [line for line in self.sweep.lines(Training(stack, ranks, words or WORDS))
                if not line.startswith("outside ")]

    def assert_close(self, stack, ranks, *words):
        with self.subTest(stack=stack, ranks=ranks, words=words):
            lines, expected = self.lines(stack, ranks, *words), self.lines("nil", 1, *words)
            self.assertEqual(len(lines), len(expected))
            self.assertGreater(len(lines), 9)
            for got, want in zip(lines[:-1], expected[:-1]):  # the digest is the last
                for x, y in zip(numbers(got), numbers(want), strict=True):
                    self.assertLess(abs(x - y), 1e-5 * abs(y), f"{got}: one process has {want}")

    def assert_alike(self, trainings):
        """Each pair prints the same."""
        self.sweep.run(one for pair in trainings for one in pair)
        for training, other in trainings:
            with self.subTest(training=training):
                self.assertGreater(len(self.sweep.lines(other)), 9)
                self.assertEqual(self.sweep.lines(training), self.sweep.lines(other))

    def test_trains_as_one_process(self):
        for kind in KINDS:
            for ranks in (2, 4):
                self.assert_close(f"strategy.context{{ {kind}size = {ranks} }}", ranks)
        self.assert_close("strategy.context{}", 2, "model=gpt", "steps=9")  # dropout of attention's weights
        self.assert_close("strategy.context{ kind = 'ulysses' }", 2, "model=gpt", "steps=9")

    def test_beside_tensor_and_pipeline(self):
        for kind in KINDS:
            for stack in ("{ strategy.context{ KIND size = 2 }, strategy.tensor{} }",
                          "{ strategy.tensor{ size = 2 }, strategy.context{ KIND } }",
                          "{ strategy.pipeline{ size = 2 }, strategy.context{ KIND } }"):
                self.assert_close(stack.replace("KIND", kind), 4)
        self.assert_close("{ strategy.data{ size = 2 }, strategy.context{ size = 2 }, strategy.tensor{ size = 2 } }", 8)
        self.assert_close(TWICE, 4)

    def test_stacks_have_the_bits_of_context_alone(self):
        self.assert_alike([
            (Training(stack.replace("CONTEXT", f"strategy.context{{ {kind}size = 2 }}"), 2 * factor, WORDS),
             Training(f"strategy.context{{ {kind}size = 2 }}", 2, WORDS))
            for kind in KINDS for factor, stack in sampled(STACKS)])
        self.assert_alike([(Training("{ strategy.context{}, strategy.recompute{} }", 2, WORDS),
                            Training("strategy.context{}", 2, WORDS))])

    def test_chunks_have_the_bits_of_one_process(self):
        def of(ranks, kind):
            return Training(f"strategy.context{{ {kind}size = {ranks}, chunks = 4 }}", ranks, WORDS)
        self.assert_alike([(of(ranks, kind), of(1, kind)) for kind in KINDS for ranks in (2, 4)])

    def test_any_strategy_may_place(self):
        """The core knows neither the name nor the axis."""
        self.assert_alike([(Training(f"{COPY}{{}}", 2, WORDS), Training("strategy.context{}", 2, WORDS))])

    def test_memory_of_a_long_sequence(self):
        def peak(ranks, kind):
            done = orrery("plan", "-n", ranks, SOURCE / "examples/context.lua", f"kind={kind}")
            self.assertEqual((done.code, done.err), (0, ""))
            self.assertNotIn("cannot work on parts", done.out)
            return max(int(n) for n in re.findall(r"arena peak +(\d+)", done.out))
        for kind in ("gathered", "ulysses"):
            self.assertLess(peak(4, kind), 0.35 * peak(1, kind))

    def test_refuses_what_cannot_be(self):
        for stack, ranks, texts in [
            ("strategy.context{}", 3, ["strategy.context (", "dim 2 of 'x' [12,16] does not divide over the 3 ranks "
                                       "of axis 'context'"]),
            ("strategy.context{ kind = 'ulysses' }", 8, ["4 heads do not divide over the 8 ranks"]),
            ("strategy.context{ kind = 'ring' }", 2, ["kind is 'ring': give gathered or ulysses"]),
            ("strategy.context{ fields = { 'x', 'z' } }", 2, ["there is no batch field 'z'"]),
            ("{ strategy.context{ size = 2 }, strategy.context{} }", 4, ["cannot join a stack"]),
            (own('draft:axis("data") draft:place(x, "data", 1) draft:place(y, "data", 2)'), 2,
             ["axis 'data' deals the batch: only the first dim of batch fields can be cut"]),
            (own('draft:axis("line") draft:place(x, "line", 2) draft:place(y, "line", 1)'), 2,
             ["the ranks of axis 'line' share the work on every sample, as strategy.mine asked", "batch field 'y'"]),
            (own('draft:axis("line") draft:place(x, "line", 3)'), 2, ["'x' is i32[12,16] and has no dim 3"]),
            ('{ strategy.tensor{ size = 2 }, strategy.define{ name = "mine", class = "approx", transform = '
             'function(draft) draft:axis("line") for _, p in ipairs(draft:values "param") do '
             'if p.name:find "qkv.weight" then draft:place(p, "line", 2) end end end }{} }', 4,
             ["qkv.weight' is cut over axis 'tensor' already, by strategy.tensor (", "over one axis only"]),
            ('{ strategy.tensor{ size = 2 }, strategy.define{ name = "mine", class = "approx", transform = '
             'function(draft) for _, p in ipairs(draft:values "param") do '
             'if p.name:find "qkv.weight" then draft:place(p, "tensor", 2) end end end }{} }', 2,
             ["qkv.weight' is cut along dim 1 over axis 'tensor' by strategy.tensor (", "along dim 2 as well"]),
        ]:
            with self.subTest(stack=stack, ranks=ranks):
                script = pathlib.Path(self.folder.name) / "strategies.lua"
                script.write_text((HERE / "strategies.lua").read_text().replace("strategy = STACK", f"strategy = {stack}"))
                done = orrery("run", "-n", ranks, script, *WORDS)
                self.assertEqual(done.code, 1, done.out)
                for text in texts:
                    self.assertIn(text, done.err)
                self.assertRegex(done.err, r"strategies\.lua:\d+:")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
