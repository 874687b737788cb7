# SPDX-License-Identifier: Apache-2.0
"""Evaluations beside training: of batches that are smaller than the number of microbatches or ranks, and of ops whose
results only a training step needs.

Argument: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

STACKS = (("strategy.data {}", 1), ("strategy.data {}", 3), ("strategy.data {}", 4),
          ("{ strategy.data {}, strategy.zero { stage = 3 } }", 3),
          ("{ strategy.pipeline { size = 2 }, strategy.data {} }", 4))


class Evaluation(unittest.TestCase):
    def printed(self, stack, ranks, model=None):
        text = (HERE / "evaluation.lua").read_text().replace("STACK", stack)
        if model:
            text = re.sub(r"nn\.sequential \{.*\}", f"nn.sequential {{ {model} }}", text)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "evaluation.lua"
            path.write_text(text)
            done = orrery("run", "-n", ranks, path)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    # Without batch statistics, the first two layers are a pair to cut as well. A bias before them would have a gradient
    # of 0 but for rounding, of which Adam makes steps.
    def test_layers_are_cut_as_in_training(self):
        model = ("nn.linear(2, 8, { bias = false }), nn.batchnorm(8), nn.dropout(0.3), nn.tanh, nn.linear(8, 8), nn.tanh, "
                 "nn.linear(8, 1)")
        one = self.printed("strategy.data {}", 1, model).splitlines()[:9]
        for stack, ranks in (("strategy.tensor {}", 2), ("{ strategy.data { size = 2 }, strategy.tensor {} }", 4)):
            for line, other in zip(one, self.printed(stack, ranks, model).splitlines()[:9], strict=True):
                self.assertAlmostEqual(float(line.split()[1]), float(other.split()[1]), places=5)

    def test_small_batches_have_their_mean_on_any_number_of_ranks(self):
        printed = {self.printed(stack, ranks) for stack, ranks in STACKS}
        self.assertEqual(len(printed), 1)
        lines = [line.split() for line in printed.pop().splitlines()]
        self.assertEqual(len(lines), 10)
        for rows, loss, expected in lines[:9]:
            self.assertAlmostEqual(float(loss), float(expected), places=6, msg=f"{rows} rows")

    def test_what_nothing_needs_places_no_state_on_a_stage(self):
        one, stages = (orrery("run", "-n", ranks, HERE / "unneeded.lua", f"pipe={ranks}") for ranks in (1, 2))
        self.assertEqual(len(one.out.splitlines()), 3)
        self.assertEqual((stages.code, stages.out), (0, one.out), stages.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
