# SPDX-License-Identifier: Apache-2.0
"""What layers of several stages have a part in is the same on one rank and on the stages of a pipeline.

Arguments: the build tree.
"""
import sys
import unittest

from program import HERE, orrery


class SeveralLosses(unittest.TestCase):
    def test_equal_on_any_number_of_stages(self):
        expected = None
        for ranks, schedule in ((1, "1f1b"), (2, "1f1b"), (3, "gpipe"), (4, "1f1b"), (4, "zb1")):
            with self.subTest(ranks=ranks, schedule=schedule):
                done = orrery("run", "-n", ranks, HERE / "several_losses.lua", f"schedule={schedule}")
                self.assertEqual(done.code, 0, done.err)
                self.assertEqual(len(done.out.splitlines()), 8 * 4)
                expected = expected or done.out
                self.assertEqual(done.out, expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
