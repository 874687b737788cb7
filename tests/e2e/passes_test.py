# SPDX-License-Identifier: Apache-2.0
"""run:eval of a dataset: each sample once, on any number of ranks and under every strategy. Losses and metrics are held
against those that this file computes in float64 of the scores of all samples.

Argument: the build tree.
"""
import json
import math
import pathlib
import sys
import tempfile
import unittest

from program import HERE, orrery

SAMPLES = 23
LABELS = [i % 4 - 1 for i in range(1, SAMPLES + 1)]
# Those that keep the bits of one process.
EXACT = (("strategy.data {}", 1), ("strategy.data {}", 3), ("strategy.data {}, strategy.zero { stage = 3 }", 3),
         ("strategy.data {}, strategy.accumulate {}", 2), ("strategy.pipeline { size = 2 }", 2),
         ("strategy.pipeline { size = 2, schedule = 'zb1' }, strategy.data {}, strategy.zero { stage = 1 }", 4))
OTHERS = (("strategy.tensor {}", 2), ("strategy.data { size = 2 }, strategy.tensor {}", 4),
          ("strategy.average { every = 2 }", 2), ("strategy.average { every = 1, size = 2 }, strategy.pipeline { size = 2 }", 4))


def expected(scores):
    """Loss, accuracy, macro F1 and perplexity over the labels that count."""
    nll, right, known = 0.0, 0, 0
    hit, said, there = [0] * 3, [0] * 3, [0] * 3
    for row, label in zip(scores, LABELS, strict=True):
        if label < 0:
            continue
        best = max(range(3), key=lambda c: row[c])
        nll += math.log(sum(math.exp(v) for v in row)) - row[label]
        known, right = known + 1, right + (best == label)
        said[best] += 1
        there[label] += 1
        hit[label] += best == label
    used = [c for c in range(3) if said[c] + there[c]]
    f1 = sum(2 * hit[c] / (said[c] + there[c]) for c in used) / len(used)
    return nll / known, right / known, f1, math.exp(nll / known)


class Passes(unittest.TestCase):
    def passes(self, stack, ranks, size, *words, first="false"):
        done = orrery("run", "-n", ranks, *words, HERE / "passes.lua", f"stack={stack}", f"size={size}", f"first={first}")
        self.assertEqual(done.code, 0, f"{stack} {done.err}")
        lines = done.out.splitlines()
        self.assertEqual(len(lines), 5, done.out)
        for told, scores in (lines[0:2], lines[2:4]):
            numbers = [float(v) for v in scores.split()]
            self.assertEqual(len(numbers), SAMPLES * 3)
            rows = [numbers[i:i + 3] for i in range(0, len(numbers), 3)]
            for found, right in zip(map(float, told.split()), expected(rows), strict=True):
                self.assertAlmostEqual(found, right, places=5, msg=f"{stack} on {ranks}, batches of {size}")
        return done.out

    def test_any_size_of_batches(self):
        for size in (1, 2, 7, 23, 64):
            self.passes("strategy.data {}", 2, size)

    def test_exact_stacks_have_one_result(self):
        printed = {self.passes(stack, ranks, 5) for stack, ranks in EXACT}
        self.assertEqual(len(printed), 1, printed)

    def test_other_stacks(self):
        for stack, ranks in OTHERS:
            self.passes(stack, ranks, 5)

    def test_training_goes_on_as_if_nothing_were_evaluated(self):
        digests = {self.passes("strategy.data {}", ranks, size).splitlines()[-1] for ranks, size in ((1, 4), (2, 23))}
        self.assertEqual(len(digests), 1)

    def test_numbers_are_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            out = self.passes("strategy.data {}", 2, 5, "--dir", folder, first="true")
            recorded = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
        losses = [(each["step"], each["eval/loss"]) for each in recorded if "eval/loss" in each]
        self.assertEqual([step for step, _ in losses], [2, 4])
        for (_, loss), line in zip(losses, out.splitlines()[0:4:2], strict=True):
            self.assertAlmostEqual(loss, float(line.split()[0]), places=6)
        self.assertEqual(sum("eval/accuracy" in each for each in recorded), 2)
        self.assertEqual([each["step"] for each in recorded if "first/loss" in each], [0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
