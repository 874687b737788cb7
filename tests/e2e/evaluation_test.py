# SPDX-License-Identifier: Apache-2.0
"""Evaluations beside training: of batches that are smaller than the number of microbatches or ranks, and of ops whose
results only a training step needs.

Argument: the build tree.
"""
import pathlib
import sys
import tempfile
import unittest

from program import HERE, orrery

STACKS = (("strategy.data {}", 1), ("strategy.data {}", 3), ("strategy.data {}", 4),
          ("{ strategy.data {}, strategy.zero { stage = 3 } }", 3),
          ("{ strategy.pipeline { size = 2 }, strategy.data {} }", 4))


class Evaluation(unittest.TestCase):
    def test_small_batches_have_their_mean_on_any_number_of_ranks(self):
        text, printed = (HERE / "evaluation.lua").read_text(), set()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "evaluation.lua"
            for stack, ranks in STACKS:
                path.write_text(text.replace("STACK", stack))
                done = orrery("run", "-n", ranks, path)
                self.assertEqual(done.code, 0, done.err)
                printed.add(done.out)
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
