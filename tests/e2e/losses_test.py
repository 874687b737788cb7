# SPDX-License-Identifier: Apache-2.0
"""Losses that are any expression of sums over the batch: quotients by different weights, bare sums, nonlinear
functions. The loss and each parameter after a step are those of plain loops in float64, whose gradient is made of
finite differences; on several ranks and under stacks they have the bits of one rank.

Arguments: the build tree; a number of random losses, if others than the suite's are wanted, and the first seed.
"""
import math
import pathlib
import random
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

ROWS, TIME, INPUTS, HIDDEN, CLASSES = 10, 3, 3, 2, 4  # of four microbatches: the last one holds a single sample
# What users write: two heads, a mixture's balance, a masked mean by hand, ...
WRITTEN = """ce
add(ce, ce)
add(ce, mul(0.3, ce2))
add(ce, mul(0.01, mse))
add(mul(0.01, mse), ce)
add(cw, ce)
div(sa, sm)
div(sa, most(sm, 1))
add(ce, div(sb, sw))
sa
mul(0.125, add(sa, sb))
add(sa, ce)
sqrt(add(mse, 1))
add(ce, sqrt(add(mse, 1)))
mul(ce, mse)
add(mul(exp(ps), ce), mul(exp(mul(-1, ps)), mse))
add(div(sa, sm), mul(0.1, pw))
sub(ce, mul(div(sw, sm), pw))
mul(pw, sqrt(add(mse, 1)))
mul(exp(ps), sqrt(add(mse, 1)))
mul(add(1, div(sm, sw)), ce)
div(sa, add(sb, 40))
sub(exp(mul(0.1, ce2)), mul(0.5, hm))""".splitlines()
STACKS = {  # whether losses that need complete sums are refused; how many ranks
    "{ strategy.data {}, strategy.zero { stage = 3 } }": (False, 3),
    "{ strategy.tensor { size = 2 }, strategy.data {} }": (False, 4),
    "{ strategy.data {}, strategy.accumulate {} }": (True, 2),
    "{ strategy.pipeline { size = 2 }, strategy.data {} }": (True, 4),
    "{ strategy.data {}, strategy.recompute {} }": (False, 2),
}


def filled(n, at):
    return [math.sin(at + 0.7 * i) for i in range(1, n + 1)]


def begin():
    return filled(INPUTS * HIDDEN, 1) + filled(HIDDEN * CLASSES, 2) + filled(1, 3)


def terms(p):
    first, second, scalar = p[:INPUTS * HIDDEN], p[INPUTS * HIDDEN:-1], p[-1]
    x = filled(ROWS * TIME * INPUTS, 4)
    t = {k: 0.0 for k in ("mse", "hm", "sa", "sb", "sm", "sw")}
    sums = {"ce": [0.0, 0.0], "ce2": [0.0, 0.0], "cw": [0.0, 0.0]}
    for b in range(1, ROWS + 1):
        for i in range(1, TIME + 1):
            at = ((b - 1) * TIME + i - 1) * INPUTS
            h = [math.tanh(sum(x[at + k] * first[k * HIDDEN + j] for k in range(INPUTS))) for j in range(HIDDEN)]
            g = [sum(h[k] * second[k * CLASSES + j] for k in range(HIDDEN)) for j in range(CLASSES)]
            label = lambda skip: -100 if (b * 5 + i * skip) % 3 == 0 else (b + i * skip) % CLASSES
            weight = ((b * 3 + i) % 5) / 4
            loss = lambda z, c: math.log(sum(math.exp(v) for v in z)) - z[c]
            y, y2 = label(1), label(2)
            for name, z, c, w in (("ce", g, y, y != -100), ("ce2", [v / 2 for v in g], y2, y2 != -100),
                                  ("cw", g, max(y, 0), weight)):
                sums[name][0] += w * loss(z, max(c, 0))
                sums[name][1] += w
            n = ROWS * TIME
            t["mse"] += sum(v * v for v in g) / (n * CLASSES)
            t["hm"] += sum(h) / (n * HIDDEN)
            t["sa"] += sum(v * v for v in h) * (y != -100)
            t["sb"] += sum(g) * weight
            t["sm"] += y != -100
            t["sw"] += weight
    t.update({name: a / b for name, (a, b) in sums.items()})
    t.update(pw=sum(v * v for v in second), ps=scalar, add=lambda u, v: u + v, sub=lambda u, v: u - v,
             mul=lambda u, v: u * v, div=lambda u, v: u / v, sqrt=math.sqrt, exp=math.exp, most=max)
    return t


def oracle(lines):
    """For each loss, its value and the parameters after the step; central differences of fourth order."""
    p, d = begin(), 1e-3
    moved = [[terms(p[:i] + [p[i] + k * d] + p[i + 1:]) for k in (-2, -1, 1, 2)] for i in range(len(p))]
    here, found = terms(p), []
    for line in lines:
        value = lambda t: eval(line, {"__builtins__": {}}, t)
        slope = [(value(a) - 8 * value(b) + 8 * value(c) - value(e)) / (12 * d) for a, b, c, e in moved]
        found.append((value(here), [v - s for v, s in zip(p, slope)]))
    return found


def invented(seed):
    """A random loss."""
    rng = random.Random(seed)
    number = lambda: str(rng.choice([-0.5, 0.125, 0.3, 1, 2]))

    def mean():
        plain = ["ce", "ce2", "cw", "mse", "hm", "div(sa, sm)", "div(sb, sw)", "div(sa, most(sm, 1))", "div(sb, sm)",
                 "mul(sa, 0.1)", "mul(sb, 0.05)", "div(add(sa, sb), sw)", "mul(exp(ps), ce)", "mul(div(sw, sm), ce2)",
                 "mul(pw, 0.1)"]
        return rng.choice(plain)

    def bent():
        t = mean()
        return rng.choice([f"sqrt(add(mul({t}, {t}), 1))", f"exp(mul(0.1, {t}))", f"mul({t}, {mean()})",
                           f"div({t}, add(mse, 1))"])

    def expression(depth):
        if depth == 0:
            return bent() if rng.random() < 0.15 else mean()
        return rng.choice([f"add({expression(depth - 1)}, {expression(depth - 1)})",
                           f"sub({expression(depth - 1)}, {expression(depth - 1)})",
                           f"mul({number()}, {expression(depth - 1)})"])

    return f"add({mean()}, {expression(rng.randint(0, 2))})"


def degree(line):
    """1 if the loss is linear in sums over the batch that depend on parameters, 2 if it is another function of them."""
    def function(*u):
        return 2 if max(u) > 0 else 0

    sums = dict.fromkeys(("ce", "ce2", "cw", "mse", "hm", "sa", "sb"), 1)
    others = dict.fromkeys(("sm", "sw", "pw", "ps"), 0)
    joined = {"add": max, "sub": max, "mul": lambda u, v: u + v, "div": lambda u, v: 2 if v > 0 else u}
    functions = dict.fromkeys(("sqrt", "exp", "most"), function)
    return eval(re.sub(r"-?\b[\d.]+\b", "0", line), {"__builtins__": {}}, {**sums, **others, **joined, **functions})


class Losses(unittest.TestCase):
    lines = WRITTEN + [invented(seed) for seed in range(20)]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "losses.txt").write_text("".join(line + "\n" for line in self.lines))

    def results(self, stack, ranks):
        script = self.folder / "losses.lua"
        script.write_text((HERE / "losses.lua").read_text().replace("strategy = STACK", f"strategy = {stack}"))
        done = orrery("run", "-n", ranks, script, f"losses={self.folder / 'losses.txt'}")
        self.assertEqual(done.code, 0, done.err)
        found = dict(re.findall(r"^(\d+) (.*)$", done.out, re.MULTILINE))
        self.assertEqual(len(found), len(self.lines), done.out)
        return [found[str(i + 1)] for i in range(len(self.lines))]

    def test_a_step_is_that_of_plain_loops(self):
        for line, got, (loss, after) in zip(self.lines, self.results("strategy.data {}", 1), oracle(self.lines)):
            with self.subTest(line):
                self.assertTrue(" loss " in " " + got, got)
                numbers = [float(v) for v in re.findall(r"[-\d.]+(?:e[-+]\d+)?", got.replace("loss", "").replace("after", ""))]
                self.assertEqual(len(numbers), 1 + len(after))
                for a, b in zip(numbers, [loss] + after):
                    self.assertAlmostEqual(a, b, delta=1e-6 * max(1, abs(b)))

    def test_any_number_of_ranks_and_stacks_have_the_bits_of_one(self):
        one = self.results("strategy.data {}", 1)
        for ranks in (2, 3, 4):
            self.assertEqual(self.results("strategy.data {}", ranks), one)
        for stack, (refuses, ranks) in STACKS.items():
            for line, got, want in zip(self.lines, self.results(stack, ranks), one):
                with self.subTest(stack=stack, line=line):
                    if refuses and degree(line) > 1:
                        self.assertRegex(got, r"^refused .*: '\w+' makes a nonlinear function of sums over the batch here, "
                                         r"so that these must be complete .* one after another: leave it out, or apply")
                    elif "tensor" not in stack:
                        self.assertEqual(got, want)
                    else:
                        self.same_numbers(got, want)

    def same_numbers(self, got, want):
        numbers = lambda text: [float(v) for v in text.split() if v[0] in "-0123456789"]
        for a, b in zip(numbers(got), numbers(want), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-9 * max(1, abs(b)))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
        Losses.lines = [invented(seed) for seed in range(first, first + int(sys.argv[2]))]
    unittest.main(argv=sys.argv[:1])
