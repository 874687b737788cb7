# SPDX-License-Identifier: Apache-2.0
"""Models that draw random numbers train alike on any ranks, saved and taken on by others (random_continued.py).

Arguments: the build tree.
"""
import pathlib
import sys
import unittest

from random_continued import Judge

CASES = 60


class RandomContinued(unittest.TestCase):
    def test_they_go_on_as_one_process_does(self):
        judge = Judge(pathlib.Path(sys.argv[1]).resolve())
        judge.judge(range(CASES))
        self.assertEqual(judge.wrong, [])
        self.assertGreater(judge.good, CASES * 0.4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
