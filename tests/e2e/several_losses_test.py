# SPDX-License-Identifier: Apache-2.0
"""What layers of several stages have a part in is the same on one rank and on the stages of a pipeline.

Arguments: the build tree.
"""
import sys
import unittest

from program import HERE, orrery


class SeveralLosses(unittest.TestCase):
    def equal(self, settings):
        expected = None
        for ranks, *options in settings:
            with self.subTest(ranks=ranks, options=options):
                done = orrery("run", "-n", ranks, HERE / "several_losses.lua", *options)
                self.assertEqual(done.code, 0, done.err)
                self.assertEqual(len(done.out.splitlines()), 9 * 5)
                expected = expected or done.out
                self.assertEqual(done.out, expected)

    def test_equal_on_any_number_of_stages(self):
        self.equal([(1,), (2,), (3, "schedule=gpipe"), (4,), (4, "schedule=zb1"), (4, "stages=2"),
                    (4, "stages=2", "zero=1"), (4, "stages=2", "zero=3")])

    def test_equal_in_mixed_precision(self):
        self.equal([(1, "precision=true"), (4, "precision=true", "stages=2", "zero=1"),
                    (4, "precision=true", "stages=2", "zero=3")])

    def test_equal_beside_values_that_are_placed(self):
        """An evaluation finds buffers, and parameters that the update alone reads, where the step has them."""
        self.equal([(1, "tensor=1"), (4, "tensor=2", "stages=2"), (8, "tensor=2", "stages=2", "zero=3")])
        self.equal([(1, "precision=true", "tensor=1"), (8, "precision=true", "tensor=2", "stages=2", "zero=1"),
                    (8, "precision=true", "tensor=2", "stages=2", "zero=3")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
