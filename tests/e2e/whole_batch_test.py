# SPDX-License-Identifier: Apache-2.0
"""Samples that read the whole batch: a step against the same one in plain loops, whose gradient is made of finite
differences; one digest on any number of ranks, under whatever deals the batch; a line where the batch is not there.

Arguments: the build tree.
"""
import math
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery
from shards import tensors

ROWS = 10  # of four microbatches: the last one holds a single sample
X = [[((i * 7 + j * 5 + i * i * j) % 11 - 5) / 4 for j in range(1, 4)] for i in range(1, ROWS + 1)]
DATA = "strategy.data {}"


def product(x, w):
    """x w^T"""
    return [[sum(a * b for a, b in zip(row, out)) for out in w] for row in x]


def shaped(flat, width):
    return [flat[i:i + width] for i in range(0, len(flat), width)]


def loss_of(p):
    y = product([[math.tanh(v) for v in row] for row in product(X, shaped(p["up.weight"], 3))],
                shaped(p["down.weight"], 8))
    z = [list(row) for row in y]
    for c in range(4):
        column = [row[c] for row in y]
        mean = sum(column) / ROWS
        scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in column) / ROWS + 0.125)
        for row, v in zip(z, column):
            row[c] = (v - mean) * scale * p["gain"][c]
    logits = product(z, [[math.tanh(v) for v in row] for row in z])
    return sum(math.log(sum(math.exp(v) for v in row)) - row[i] for i, row in enumerate(logits)) / ROWS


def slopes(p):
    found = {}
    for name, values in p.items():
        found[name] = []
        for i, v in enumerate(values):
            more, less = ({**p, name: values[:i] + [v + d] + values[i + 1:]} for d in (1e-5, -1e-5))
            found[name].append((loss_of(more) - loss_of(less)) / 2e-5)
    return found


class WholeBatch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_stack(self, stack, ranks, *words, change=("", "")):
        path = self.folder / "whole_batch.lua"
        text = (HERE / path.name).read_text().replace("STACK,", f"{stack},")
        path.write_text(text.replace(*change))
        return orrery("run", "-n", ranks, path, *words)

    def digest(self, stack, ranks, *words):
        done = self.run_stack(stack, ranks, "steps=3", *words)
        self.assertEqual(done.code, 0, done.err)
        return re.search(r"^digest (\w+)$", done.out, re.MULTILINE)[1]

    def weights(self, stack, ranks, steps):
        done = self.run_stack(stack, ranks, f"steps={steps}", f"save={self.folder / 'ck'}")
        self.assertEqual(done.code, 0, done.err)
        found = {name: list(v) for name, v in tensors(self.folder / "ck").items() if "." in name or name == "gain"}
        return found, re.findall(r"loss (\S+)", done.out)

    def test_a_step_is_that_of_plain_loops(self):
        begin, _ = self.weights(DATA, 1, 0)
        self.assertEqual({name: len(v) for name, v in begin.items()}, {"up.weight": 24, "down.weight": 32, "gain": 4})
        want = slopes(begin)
        for stack, ranks in ((DATA, 1), (DATA, 4), (f"{{ {DATA}, strategy.zero {{ stage = 2 }} }}", 3),
                             (f"{{ strategy.tensor {{ size = 2 }}, {DATA} }}", 4),
                             ("strategy.topk { fraction = 1 }", 3)):
            with self.subTest(stack=stack, ranks=ranks):
                after, losses = self.weights(stack, ranks, 1)
                self.assertAlmostEqual(float(losses[0]), loss_of(begin), places=5)
                for name, slope in want.items():
                    for now, before, d in zip(after[name], begin[name], slope):
                        self.assertAlmostEqual(now, before - d, places=4)

    def test_one_digest(self):
        expected = self.digest(DATA, 1)
        self.assertNotEqual(self.digest(DATA, 1, "rows=9"), expected)
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                self.assertEqual(self.digest(DATA, ranks), expected)
        for more in ("zero { stage = 1 }", "zero { stage = 2 }", "zero { stage = 3 }", "recompute {}"):
            with self.subTest(more=more):
                self.assertEqual(self.digest(f"{{ {DATA}, strategy.{more} }}", 3), expected)
        self.assertEqual(self.digest("strategy.server { servers = 1 }", 3), expected)

    def test_one_digest_of_other_numbers(self):
        for other in ("tensor { size = 2 }", "precision {}"):
            found = {self.digest(f"{{ strategy.{other}, {DATA} }}", ranks) for ranks in (2, 4)}
            self.assertEqual(len(found), 1, other)

    def test_the_examples_batch_has_no_ranks(self):
        found = set()
        for ranks in (1, 2, 3, 4):
            done = orrery("run", "-n", ranks, "examples/contrastive.lua", "steps=25")
            self.assertEqual(done.code, 0, done.err)
            found |= set(re.findall(r"^digest (\w+)$", done.out, re.MULTILINE))
        self.assertEqual(len(found), 1)

    def refused(self, stack, ranks, line, *, change=("", "")):
        done = self.run_stack(stack, ranks, change=change)
        self.assertNotEqual(done.code, 0)
        self.assertRegex(done.err, line)

    def test_a_line_where_the_batch_is_not_there(self):
        here = (r"whole_batch.lua:14: Model: samples read what is made of the whole batch here \(a sum or mean over "
                r"it\), but strategy.{}: .*keep it in a buffer with :update")
        for stack, ranks, name in (("strategy.accumulate {}", 1, "accumulate runs microbatches one after another"),
                                   ("strategy.pipeline {}", 2, "pipeline runs microbatches one after another"),
                                   ("strategy.average { every = 2 }", 2, "average has the ranks .* train apart"),
                                   ("strategy.server { servers = 1, mode = 'async' }", 2, "server has no common step"),
                                   ("strategy.server { servers = 1, dedicated = true }", 3,
                                    "server leaves ranks without samples")):
            with self.subTest(stack=stack):
                self.refused(stack, ranks, here.format(name))

    def test_a_line_where_each_ranks_own_gradient_is_asked_for(self):
        self.refused("strategy.topk {}", 2, "whole_batch.lua:1[45]: Model: a parameter meets here what is made of the "
                     "whole batch before samples do, and a strategy wants each rank's own part of its gradient",
                     change=("return away * ((away * away):mean(1) + 0.125):rsqrt() * m.gain",
                             "return away * (((away * away):mean(1) + 0.125):rsqrt() * m.gain)"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
