# SPDX-License-Identifier: Apache-2.0
"""Random models train as PyTorch says (random_models.py), on one rank and under a random stack of strategies.

Arguments: the build tree.
"""
import json
import pathlib
import sys
import unittest

from random_runs import Judge

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1]).resolve()
RECORDED = json.loads((HERE / "random_models.json").read_text())["models"]


class RandomModels(unittest.TestCase):
    def judged(self, stacked):
        wrong = []
        judge = Judge(BUILD, lambda seed, _: RECORDED[seed], lambda _, text: wrong.append(text), stacked)
        for seed, want in enumerate(RECORDED):
            if want:
                judge.take(seed)
        judge.finish()
        self.assertEqual(wrong, [])
        return judge

    def test_they_train_as_recorded(self):
        self.assertLess(len(self.judged(stacked=False).refused), 5)

    def test_they_train_so_in_stacks(self):
        """What a stack cannot do is refused; most can be done."""
        self.assertGreater(self.judged(stacked=True).trained, len(RECORDED) * 0.6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
