# SPDX-License-Identifier: Apache-2.0
"""A linear model whose gradients are known in closed form, trained by open.lua under a strategy: what tests of strategies
hold against the recursions of papers.
"""
import pathlib
import re
import tempfile
import unittest

from program import HERE, SOURCE, orrery
from shards import tensors

ROWS, INPUTS, OUTPUTS = 8, 6, 5
LR = 0.125
LIBRARY = SOURCE / "scripts/orrery/strategy"


def sample(step, i, data):
    k = 1 if data == "parallel" else i
    x = [((step * 7 + k * 5 + j * 3) % 11 - 5) / 8 for j in range(1, INPUTS + 1)]
    y = [((step * 3 + k * 2 + j * 7) % 13 - 6) / 8 for j in range(1, OUTPUTS + 1)]
    if data == "orthogonal":
        x = [0.0 if (j % 2 == 0) == (2 * i > ROWS) else v for j, v in enumerate(x, 1)]
    return x, y


def gradient(step, first, last, rows=ROWS, data="mixed"):
    """Of the mean over `rows` samples, the part of the samples [first, last): exact in f32."""
    g = [0.0] * (OUTPUTS * INPUTS)
    for i in range(first, last):
        x, y = sample(step, i + 1, data)
        for o in range(OUTPUTS):
            for j in range(INPUTS):
                g[o * INPUTS + j] += y[o] * x[j] / rows
    return g


def plus(a, b, factor=1.0):
    return [x + factor * y for x, y in zip(a, b)]


def mean(values):
    return [sum(v) / len(v) for v in zip(*values)]


class LinearCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_stack(self, stack, ranks, *words, before="", command="run", script="open.lua"):
        path = self.folder / script
        text = (HERE / script).read_text().replace("strategy = STACK", f"strategy = {stack}")
        path.write_text(text.replace("local run = orrery.compile", before + "\nlocal run = orrery.compile"))
        return orrery(command, *["--details"] * (command == "plan"), "-n", ranks, path, *words)

    def trained(self, stack, ranks, *words, name="ck", **more):
        done = self.run_stack(stack, ranks, f"save={self.folder / name}", *words, **more)
        self.assertEqual(done.code, 0, done.err)
        self.digest = re.search(r"^digest (\w+)$", done.out, re.MULTILINE)[1]
        return tensors(self.folder / name)

    def begin(self):
        return list(self.trained("nil", 1, "steps=0", name="begin")["fc.weight"])

    def assert_near(self, got, expected, places=5):
        self.assertEqual(len(got), len(expected))
        for a, b in zip(got, expected):
            self.assertAlmostEqual(a, b, places=places)

    def of_rank(self, step, rank, ranks, **how):
        """A rank's summand of the mean gradient; of its own mean with rows = its samples."""
        each = ROWS // ranks
        return gradient(step, rank * each, (rank + 1) * each, **how)
