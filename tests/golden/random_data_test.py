# SPDX-License-Identifier: Apache-2.0
"""Steps are fed the rows that docs/data.md promises, of random datasets, in one process and in two that take turns on
other numbers of ranks (random_feeds.py). tests/foreign/data.py runs more of them, on arrays that NumPy has saved.

Arguments: the build tree.
"""
import pathlib
import sys
import tempfile
import unittest

from random_feeds import Feed, Tally, judge

CASES = 60


class RandomData(unittest.TestCase):
    def test_steps_see_the_rows_that_are_promised(self):
        tally = Tally()
        with tempfile.TemporaryDirectory() as folder:
            wrong, refused = judge(pathlib.Path(sys.argv[1]).resolve(), Feed, range(CASES), pathlib.Path(folder), tally)
        self.assertEqual((wrong, refused, tally.wrong()), ({}, {}, []))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
