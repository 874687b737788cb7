# SPDX-License-Identifier: Apache-2.0
"""Functions that read and change parameters before and between steps, whoever holds these: the numbers are those of one
process.

Arguments: the build tree.
"""
import pathlib
import sys
import unittest

from program import orrery

SCRIPT = pathlib.Path(__file__).resolve().parent / "between_steps.lua"
STACKS = [
    (2, "strategy.data {}"),
    (2, "strategy.data {}, strategy.zero { stage = 1 }"),
    (3, "strategy.data {}, strategy.zero { stage = 3 }"),
    (2, "strategy.pipeline { size = 2 }"),
    (4, "strategy.pipeline { size = 2 }, strategy.data {}, strategy.zero { stage = 2, cut = 'tensor' }"),
]


def run(ranks, *arguments):
    return orrery("run", "-n", str(ranks), SCRIPT, *arguments)


class BetweenSteps(unittest.TestCase):
    def agree(self, also="", stacks=STACKS, judged="false"):
        alone = run(1, f"stack={also}", f"judged={judged}")
        self.assertEqual(alone.code, 0, alone.err)
        for ranks, stack in stacks:
            with self.subTest(stack=stack, also=also):
                done = run(ranks, f"stack={stack}, {also}", f"judged={judged}")
                self.assertEqual((done.code, done.out), (0, alone.out), done.err)

    def test_exact_stacks(self):
        self.agree()

    def test_copies_of_16_bits(self):
        self.agree("strategy.precision {}")

    def test_a_second_run_that_reads_both_models(self):
        self.agree("", STACKS[:3], judged="true")
        self.agree("strategy.precision {}", [STACKS[0], STACKS[2]], judged="true")

    def test_ranks_that_train_apart(self):
        done = run(2, "stack=strategy.average { size = 1 }, strategy.data {}, strategy.zero { stage = 3 }")
        self.assertEqual(done.code, 0, done.err)
        done = run(4, "stack=strategy.average { size = 2 }, strategy.data {}, strategy.zero { stage = 3 }")
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"between_steps.lua:\d+: '.*' is held in parts by ranks that train apart")

    def test_two_parameters_of_one_name(self):
        done = run(2, "unnamed=true", "stack=strategy.data {}, strategy.zero {}")
        self.assertEqual(done.code, 1)
        self.assertIn("the step reads two parameters named '1.bias': put their modules into one table", done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
