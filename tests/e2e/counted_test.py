# SPDX-License-Identifier: Apache-2.0
"""Optimizers count the steps that a parameter has taken: counted.lua beside the papers' formulas in float64, where parameters
are frozen and thawed, steps are taken back, copies train apart, loops are the script's own, and runs go on from checkpoints.

Arguments: the build tree; and, to try more of them than the suite does, how many, and the first seed.
"""
import math
import pathlib
import random
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

SLOPES = {"a": [1, -2, 0.5], "b": [3, 0.125]}
NEWER = ["damped", "adadelta", "adamax", "nadam", "radam", "radam_short", "rprop", "adafactor"]
KINDS = ["sgd", "momentum", "adagrad", "rmsprop", "lion", "lars", "adam", "adamw", "lamb"] + NEWER


def norm(x):
    return math.sqrt(sum(v * v for v in x))


def ratio(over, under):
    return over / under if over > 0 and under > 0 else 1


class Copy:
    """A parameter and its optimizer's states; `count` is how many updates it has taken."""

    def __init__(self, kind, name):
        self.kind, self.count = kind, 0
        self.decay, self.fixed = (0.1, None) if name == "a" else (0, 0.05)
        self.p = [0.5] * 3 if name == "a" else [-0.25] * 2
        self.m, self.v = [0.0] * len(self.p), [0.0] * len(self.p)

    def update(self, g, step):
        """`step`: the run's, by which the rate goes."""
        lr = self.fixed or 0.1 * (1 - (step - 1) / 20)
        p, m, v, decay, kind = self.p, self.m, self.v, self.decay, self.kind
        self.count += 1
        if kind in NEWER:
            self.p = self.newer(g, lr)
            return
        if kind in ("adam", "sgd", "momentum", "adagrad", "rmsprop"):
            g = [x + decay * w for x, w in zip(g, p)]
        if kind in ("adam", "adamw", "lamb"):
            self.m = m = [0.9 * a + 0.1 * x for a, x in zip(m, g)]
            self.v = v = [0.999 * a + 0.001 * x * x for a, x in zip(v, g)]
            c1, c2 = 1 - 0.9 ** self.count, 1 - 0.999 ** self.count
            step_by = [a / c1 / (math.sqrt(b / c2) + (1e-6 if kind == "lamb" else 1e-8)) for a, b in zip(m, v)]
            if kind != "adam":
                step_by = [s + decay * w for s, w in zip(step_by, p)]
            if kind == "lamb":
                step_by = [s * ratio(norm(p), norm(step_by)) for s in step_by]
        elif kind == "sgd":
            step_by = g
        elif kind == "momentum":
            self.m = step_by = [0.9 * a + x for a, x in zip(m, g)]
        elif kind == "adagrad":
            self.v = v = [a + x * x for a, x in zip(v, g)]
            step_by = [x / (math.sqrt(a) + 1e-10) for a, x in zip(v, g)]
        elif kind == "rmsprop":
            self.v = v = [0.99 * a + 0.01 * x * x for a, x in zip(v, g)]
            step_by = [x / (math.sqrt(a) + 1e-8) for a, x in zip(v, g)]
        elif kind == "lion":
            step_by = [math.copysign(1, 0.9 * a + 0.1 * x) + decay * w for a, x, w in zip(m, g, p)]
            self.m = [0.99 * a + 0.01 * x for a, x in zip(m, g)]
        else:  # lars
            trust = ratio(norm(p), norm(g) + decay * norm(p)) * 0.001
            self.m = step_by = [0.9 * a + lr * trust * (x + decay * w) for a, x, w in zip(m, g, p)]
            lr = 1
        self.p = [w - lr * s for w, s in zip(p, step_by)]


    def newer(self, g, lr):
        """The parameter after an update by PyTorch's kinds."""
        n, p, decay = self.count, self.p, self.decay
        if self.kind == "adafactor":
            weight = n ** -0.8
            self.v = v = [a + (x * x - a) * weight for a, x in zip(self.v, g)]
            by = [x / math.sqrt(max(a, 2 ** -46)) for a, x in zip(v, g)]
            rate = max(1e-3, norm(p) / math.sqrt(len(p))) * min(lr, n ** -0.5) / max(1, norm(by) / math.sqrt(len(by)))
            return [w * (1 - lr * decay) - rate * x for w, x in zip(p, by)]
        if self.kind == "rprop":
            sizes = self.v if n > 1 else [lr] * len(p)
            turns = [a * x for a, x in zip(self.m, g)]
            self.v = [min(max(a * (1.2 if t > 0 else 0.5 if t < 0 else 1), 1e-6), 50) for a, t in zip(sizes, turns)]
            self.m = m = [x if t >= 0 else 0 for x, t in zip(g, turns)]
            return [w - (x > 0) * a + (x < 0) * a for w, x, a in zip(p, m, self.v)]
        g = [x + decay * w for x, w in zip(g, p)]
        if self.kind == "damped":
            self.m = [0.9 * a + x * (0.25 if n > 1 else 1) for a, x in zip(self.m, g)]
            return [w - lr * a for w, a in zip(p, self.m)]
        if self.kind == "adadelta":
            self.v = [0.9 * a + 0.1 * x * x for a, x in zip(self.v, g)]
            by = [x * math.sqrt((b + 1e-6) / (a + 1e-6)) for x, a, b in zip(g, self.v, self.m)]
            self.m = [0.9 * b + 0.1 * x * x for b, x in zip(self.m, by)]
            return [w - lr * x for w, x in zip(p, by)]
        self.m = m = [0.9 * a + 0.1 * x for a, x in zip(self.m, g)]
        first = 1 - 0.9 ** n
        if self.kind == "adamax":
            self.v = [max(0.999 * a, abs(x) + 1e-8) for a, x in zip(self.v, g)]
            return [w - lr * a / first / b for w, a, b in zip(p, m, self.v)]
        b2 = 0.9 if self.kind == "radam_short" else 0.999
        self.v = v = [b2 * a + (1 - b2) * x * x for a, x in zip(self.v, g)]
        second = 1 - b2 ** n
        if self.kind == "nadam":
            mus = [0.9 * (1 - 0.5 * 0.96 ** (i * 4e-3)) for i in range(1, n + 2)]
            now, after = math.prod(mus[:-1]), math.prod(mus)
            by = [x * (1 - mus[-2]) / (1 - now) + a * mus[-1] / (1 - after) for x, a in zip(g, m)]
            return [w - lr * x / (math.sqrt(b / second) + 1e-8) for w, x, b in zip(p, by, v)]
        most = 2 / (1 - b2) - 1
        length = most - 2 * n * b2 ** n / second
        if length <= 5:
            return [w - lr * a / first for w, a in zip(p, m)]
        factor = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) * math.sqrt(second)
        return [w - lr * a / first * factor / (math.sqrt(b) + 1e-8) for w, a, b in zip(p, m, v)]


class Case:
    """A random history, as the script's words and as what is right."""

    def __init__(self, seed, kind=None, how=None):
        r = random.Random(seed)
        self.kind = kind or r.choice(KINDS)
        self.how = how or r.choice(["frozen", "skipped", "apart", "attached"])
        self.ranks = 1 if self.how == "attached" else r.randint(2, 3) if self.how == "apart" else r.randint(1, 3)
        self.steps = 8
        self.again = r.randint(2, 6) if r.random() < 0.5 else 0
        self.frozen, self.bad, self.rows = ["-"] * 8, [0] * 8, [6] * 8
        if self.how in ("frozen", "attached", "skipped"):
            until = {name: r.choice([0, 0, r.randint(1, 5)]) for name in "ab"}
            self.frozen = ["".join(n for n in "ab" if s < until[n] or r.random() < 0.2) or "-" for s in range(8)]
            self.frozen = [f if f != "ab" else r.choice("ab") for f in self.frozen]
        if self.how == "attached":
            self.frozen = [f if s else "-" for s, f in enumerate(self.frozen)]  # what is frozen then is not attached
            if self.again:  # nor is what is frozen when the loop goes on
                self.frozen[self.again] = "-"
                self.frozen[self.again - 1] = "-"
        if self.how == "skipped":
            self.bad = [int(r.random() < 0.4) for _ in range(8)]
        self.stack = "strategy.data {}"
        if self.how == "skipped":
            self.stack += ", strategy.precision { compute = 'f32', loss_scale = 'dynamic' }"
        elif self.how == "apart":
            self.rows = [r.choice([6, 6, 4, 1]) for _ in range(8)]
            self.stack = "strategy.average { every = 1 }"
        if self.how in ("frozen", "skipped"):
            more = r.choice(["", "zero", "zero", "pipeline", "tensor"])
            if more == "zero" and self.ranks > 1:
                self.stack += f", strategy.zero {{ stage = {r.randint(1, 3)} }}"
            elif more == "tensor" and self.ranks > 1:
                self.stack = "strategy.accumulate {}, " + self.stack
        self.attached = self.how == "attached"

    def words(self, folder):
        text = lambda list_: ",".join(map(str, list_))
        return [f"kind={self.kind}", f"stack={self.stack}", f"frozen={text(self.frozen)}", f"bad={text(self.bad)}",
                f"rows={text(self.rows)}", f"again={self.again}", f"folder={folder}/saved{'.safetensors' if self.attached else ''}",
                f"attached={str(self.attached).lower()}"]

    def right(self):
        copies = [{name: Copy(self.kind, name) for name in "ab"} for _ in range(self.ranks if self.how == "apart" else 1)]
        lines = []
        for step in range(1, self.steps + 1):
            rows = self.rows[step - 1]
            x = [((step * 5 + i * 3) % 7 - 2) / 2 for i in range(1, rows + 1)]
            each = -(-rows // 3)  # the samples of a microbatch
            first = [0, 1, 2, 3] if len(copies) == 3 else [0, 1, 3]  # microbatches of the copies
            for c, copy in enumerate(copies):
                mine = x if len(copies) == 1 else x[first[c] * each:first[c + 1] * each]
                for name, state in copy.items():
                    if mine and name not in self.frozen[step - 1] and not self.bad[step - 1]:
                        state.update([s * sum(mine) / len(mine) for s in SLOPES[name]], step)
            for name in "ab":
                mean = [sum(v) / len(copies) for v in zip(*(copy[name].p for copy in copies))]
                for copy in copies:
                    copy[name].p = list(mean)
            lines.append(copies[0]["a"].p + copies[0]["b"].p)
        return lines


class Counted(unittest.TestCase):
    def values(self, ranks, words):
        done = orrery("run", "-n", ranks, HERE / "counted.lua", *words)
        self.assertEqual(done.code, 0, f"{words}\n{done.err}")
        return [[float(x) for x in line.split()] for line in re.findall(r"^values (.*)$", done.out, re.MULTILINE)]

    def check(self, case, tolerance=2e-5):
        with tempfile.TemporaryDirectory() as folder, self.subTest(words=" ".join(case.words("D")), ranks=case.ranks):
            found, right = self.values(case.ranks, case.words(folder)), case.right()
            self.assertEqual(len(found), case.steps)
            for step, (line, want) in enumerate(zip(found, right), 1):
                for x, y in zip(line, want):
                    self.assertAlmostEqual(x, y, delta=tolerance, msg=f"step {step}: {line} is not {want}")

    def test_histories(self):
        for i, (kind, how) in enumerate([("adamw", "frozen"), ("adam", "skipped"), ("lamb", "frozen"), ("adamw", "apart"),
                                         ("adam", "attached"), ("adamw", "skipped"), ("lion", "frozen"), ("rmsprop", "apart")]):
            self.check(Case(100 + i, kind, how))

    def test_newer_kinds(self):
        for i, kind in enumerate(NEWER):
            self.check(Case(200 + i, kind, ("frozen", "skipped", "attached", "frozen")[i % 4]))

    def test_checkpoints_that_do_not_count(self):
        for attached in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                case = Case(1, "adamw", "attached" if attached else "frozen")
                case.again, case.frozen, case.ranks, case.stack = 4, ["-"] * 8, 1, "strategy.data {}"
                found = self.values(1, case.words(folder) + ["uncounted=true"])
                for line, want in zip(found, case.right()):
                    for x, y in zip(line, want):
                        self.assertAlmostEqual(x, y, delta=2e-5)

    def test_servers_count_what_they_apply(self):
        """Of a gradient that is always 1 each update is as long as the rate, in whichever order they come."""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "servers.lua"
            script.write_text("""local orrery = require "orrery"
local w = orrery.parameter({ 2 }, { name = "w" })
local run = orrery.compile(function(b) return (w:sum() * b.x):mean() end, {
  params = { w = w }, optimizer = orrery.optim.adam { lr = 0.01 }, microbatches = 3, strategy = { orrery.strategy.server { mode = "async" } },
})
for _ = 1, 5 do run:step { x = orrery.tensor({ 1, 1, 1 }, "f32") } end
orrery.log("moved %.9g %.9g", table.unpack(w:read():tolist()))
""")
            done = orrery("run", "-n", 3, script)
            self.assertEqual(done.code, 0, done.err)
            for moved in re.search(r"moved (\S+) (\S+)", done.out).groups():
                self.assertAlmostEqual(float(moved), -0.01 * 15, delta=1e-6)

    def test_f64(self):
        for i, kind in enumerate(["adamw"] + NEWER):
            with self.subTest(kind):
                self.check_f64(Case(3 + i, kind, "frozen"))

    def check_f64(self, case):
        case.again, case.ranks = 0, 1
        words = [w for w in case.words("unused") if not w.startswith("stack=")] + ["dtype=f64"]
        for line, want in zip(self.values(1, words), case.right()):
            for x, y in zip(line, want):
                self.assertAlmostEqual(x, y, delta=1e-12)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        tests = Counted()
        first = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
        for seed in range(first, first + int(sys.argv[2])):
            tests.check(Case(seed))
        print("ok")
    else:
        unittest.main(argv=sys.argv[:1])
