# SPDX-License-Identifier: Apache-2.0
"""Muon makes each matrix orthogonal by itself: muon.lua beside the formula of its authors in float64. Of a list of matrices
each is one, the kernel of a convolution is one of its output channels, and what is no matrix of a layer is refused.

Arguments: the build tree.
"""
import math
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

# By parameter: how many matrices, their rows and columns.
SHAPES = [(2, 3, 5), (1, 4, 18), (1, 5, 6), (1, 6, 4)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(row) for row in zip(*a)]


def orthogonal(x):
    """Five steps of the iteration of Jordan et al. (2024)."""
    if len(x) > len(x[0]):
        return turned(orthogonal(turned(x)))
    size = max(math.sqrt(sum(v * v for row in x for v in row)), 1e-7)
    x = [[v / size for v in row] for row in x]
    for _ in range(5):
        a = product(x, turned(x))
        aa = product(a, a)
        b = [[-4.7750 * p + 2.0315 * q for p, q in zip(r, s)] for r, s in zip(a, aa)]
        x = [[3.4445 * p + q for p, q in zip(r, s)] for r, s in zip(x, product(b, x))]
    return x


def filled(n, phase):
    return [math.sin(0.7 * i + phase) for i in range(n)]


def right(adjust, nesterov):
    lines = []
    p = [filled(n * r * c, i) for i, (n, r, c) in enumerate(SHAPES, 1)]
    m = [[0.0] * len(x) for x in p]
    for step in range(1, 4):
        mean = (step + 1 - 0.5 + 0.25) / 4
        for i, (n, rows, columns) in enumerate(SHAPES):
            g = [mean * s for s in filled(len(p[i]), 11 + i)]
            m[i] = [0.95 * a + 0.05 * b for a, b in zip(m[i], g)]
            x = [0.05 * b + 0.95 * a for a, b in zip(m[i], g)] if nesterov else m[i]
            rate = math.sqrt(max(1, rows / columns)) if adjust == "original" else 0.2 * math.sqrt(max(rows, columns))
            direction = []
            for k in range(n):
                one = x[k * rows * columns:(k + 1) * rows * columns]
                for row in orthogonal([one[r * columns:(r + 1) * columns] for r in range(rows)]):
                    direction += [rate * v for v in row]
            p[i] = [w - 0.1 * (d + 0.1 * w) for w, d in zip(p[i], direction)]
            lines.append(p[i])
    return lines


class Muon(unittest.TestCase):
    def test_each_matrix_by_itself(self):
        zero = ", strategy.zero {{ stage = {} }}"
        for ranks, more, adjust, nesterov in [(1, "", "original", True), (1, "", "match_rms_adamw", False),
                                              (2, zero.format(1), "original", True), (2, zero.format(3), "original", True)]:
            with self.subTest(ranks=ranks, more=more, adjust=adjust):
                done = orrery("run", "-n", ranks, HERE / "muon.lua", f"stack=strategy.data {{}}{more}", f"adjust={adjust}",
                              f"nesterov={str(nesterov).lower()}")
                self.assertEqual(done.code, 0, done.err)
                found = [[float(x) for x in line.split()] for line in re.findall(r"^values (.*)$", done.out, re.MULTILINE)]
                want = right(adjust, nesterov)
                self.assertEqual(len(found), len(want))
                for line, values in zip(found, want):
                    for x, y in zip(line, values):
                        self.assertAlmostEqual(x, y, delta=2e-4)

    def test_what_is_no_matrix_of_a_layer_is_refused(self):
        for part, why in [("nn.embedding(8, 4)", r"muon: 'weight' \[8,4\] is a table of embeddings"),
                          ("nn.embedding_bag(8, 4)", r"muon: 'weight' \[8,4\] is a table of embeddings"),
                          ("nn.rmsnorm(4)", r"muon: 'weight' \[4\] is no matrix")]:
            with tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder) / "refused.lua"
                script.write_text(f"""local orrery = require "orrery"
local nn = orrery.nn
local model = {part}
local run = orrery.compile(function(b) return (model.weight * b.x:mean()):sum() + b.x:mean() end, {{
  params = model, optimizer = orrery.optim.muon {{}} }})
run:step {{ x = orrery.tensor({{ 1.0, 2.0 }}) }}
""")
                done = orrery("run", script)
                self.assertEqual(done.code, 1, done.out)
                self.assertRegex(done.err, why + r".*give it another kind by a group, as in optim\.muon\{groups")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
