# SPDX-License-Identifier: Apache-2.0
"""Parameters that are frozen and thawed between steps are trained in just the steps in which they are not frozen.

Arguments: the build tree.
"""
import re
import sys
import unittest

from program import HERE, orrery

# By step: the mean of the batch, and which of a and b are trained.
STEPS = [(3, "b"), (3, "ab"), (3, "ab"), (3, "a"), (3, "a"), (3, "ab")]


class Frozen(unittest.TestCase):
    def trained(self, stack, ranks):
        done = orrery("run", "-n", ranks, HERE / "frozen.lua", f"stack={stack}")
        self.assertEqual(done.code, 0, done.err)
        return [tuple(map(float, pair)) for pair in re.findall(r"^weights (\S+) (\S+)$", done.out, re.MULTILINE)]

    def test_steps_train_what_is_not_frozen(self):
        weight, speed, want = {"a": 0, "b": 0}, {"a": 0, "b": 0}, []
        for mean, names in STEPS:
            for name in names:
                speed[name] = speed[name] / 2 + mean * (2 if name == "b" else 1)
                weight[name] -= speed[name]
            want.append((weight["a"], weight["b"]))
        for stack in ("data", "zero1", "zero2", "zero3", "place", "pipeline"):
            for ranks in (1, 2) if stack != "place" else (2,):
                with self.subTest(stack=stack, ranks=ranks):
                    self.assertEqual(self.trained(stack, ranks), want)

    def test_programs_between_steps_cannot_follow(self):
        for stack in ("average", "stale"):
            done = orrery("run", "-n", 2, HERE / "frozen.lua", f"stack={stack}")
            self.assertEqual(done.code, 1)
            self.assertRegex(done.err, r"frozen\.lua:\d+: .*parameters were frozen or thawed after the first step, which the "
                                       rf"programs that run between the steps of strategy\.\w+ were made for: do it before")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
