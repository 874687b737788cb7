# SPDX-License-Identifier: Apache-2.0
"""A few random histories of kills, stops and continuations (histories.py); tests/foreign/elastic.py makes more.

Arguments: the build tree.
"""
import sys
import unittest

from histories import History

SEEDS = (201, 203, 204, 210, 214, 218)


class Elastic(unittest.TestCase):
    def test_they_train_what_nothing_disturbs(self):
        for seed in SEEDS:
            history = History(seed)
            complaints = history.complaints()
            with self.subTest(str(history)):
                self.assertEqual(complaints, [])
                self.assertTrue(history.lives, history.refused)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
