# SPDX-License-Identifier: Apache-2.0
# Takes: numpy
"""Strategies of random tensor code (tests/golden/random_hooks.py), alone and over others, held against NumPy; half of
them are saved on the way and go on in another process.

Arguments: the build tree, then if given the first seed and how many.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import numpy as np  # noqa: E402
from expressions import Dice  # noqa: E402
from random_hooks import Hook  # noqa: E402

LAYERS, STEPS, LR = 3, 5, 0.05
SCRIPT = """local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local mine = strategy.define { name = "mine", class = "approx", axis = "replica", independent = INDEPENDENT,
  options = { size = 0, every = EVERY }, states = { STATES },
  HOOK = function(x, s, o, axis)
    LINES
  end }
local Net = nn.module("Net", function(m)
  for i = 1, #WEIGHTS do m["l" .. i] = nn.linear(WIDTH, WIDTH, { bias = false, dtype = "f64" }) end
  return function(batch)
    local y = batch.x
    for i = 1, #WEIGHTS do y = m["l" .. i](y):tanh() end
    return ((y - batch.y):sumsq(2)):mean()
  end
end)
local net = Net()
for i, w in ipairs(WEIGHTS) do net["l" .. i].weight:write(orrery.tensor(w, "f64")) end
local run = orrery.compile(net, { params = net, microbatches = MICROBATCHES, optimizer = orrery.optim.momentum { lr = LR },
  strategy = { mine { size = SIZE }, OTHERS } })
if FIRST > 1 then run:load "FOLDER" end
local batches = BATCHES
for i = FIRST, LAST do run:step { x = orrery.tensor(batches[i].x, "f64"), y = orrery.tensor(batches[i].y, "f64") } end
if LAST < #batches then run:save "FOLDER" end
for i = 1, #WEIGHTS do
  for _, row in ipairs(net["l" .. i].weight:read():tolist()) do for _, x in ipairs(row) do orrery.log("%.12g", x) end end
end
""".replace("LR", str(LR))


def lua(x):
    if isinstance(x, np.ndarray):
        return lua(x.tolist())
    return f"{{ {', '.join(map(lua, x))} }}" if isinstance(x, list) else repr(x)


class Case:
    def __init__(self, dice):
        self.dice, self.apart = dice, dice.chance(0.5)
        self.replicas, inner = dice.choice([2, 2, 2, 3, 4]), 1
        self.others, share = "", 1
        if self.replicas == 2 and dice.chance(0.6):
            inner = 2
            kind = dice.choice(["data", "zero", "pipeline", "tensor"])
            self.others = {"data": "strategy.data {}", "zero": f"strategy.data {{}}, strategy.zero {{ stage = {1 + dice.below(3)} }}",
                           "pipeline": f"strategy.pipeline {{ schedule = '{dice.choice(['gpipe', '1f1b', 'zb1'])}' }}",
                           "tensor": "strategy.tensor {}"}[kind]
            share = 2 if kind in ("data", "zero") else 1
        self.ranks, self.microbatches = self.replicas * inner, self.replicas * share * (1 + dice.below(2))
        self.width, self.rows = dice.choice([2, 4]), self.microbatches * (1 + dice.below(2))
        self.every = 1 + dice.below(3) if self.apart else 1
        self.cut = dice.choice([0, 0, 2, 3])
        self.hook = Hook(dice, self.replicas, (self.width, self.width))
        self.weights = [self.numbers(self.width) for _ in range(LAYERS)]
        self.batches = [(self.numbers(self.rows), self.numbers(self.rows)) for _ in range(STEPS)]

    def numbers(self, rows):
        return np.array([[round(self.dice.normal(), 3) for _ in range(self.width)] for _ in range(rows)])

    def script(self, folder, first, last):
        states = ", ".join(f"{name} = {{ init = '{init}', varying = {str(varying).lower()} }}" for name, (init, varying) in self.hook.states.items())
        batches = ", ".join(f"{{ x = {lua(x)}, y = {lua(y)} }}" for x, y in self.batches)
        given = {"INDEPENDENT": str(self.apart).lower(), "EVERY": self.every, "STATES": states, "LINES": "\n    ".join(self.hook.lines),
                 "HOOK": "synchronize" if self.apart else "exchange", "WIDTH": self.width, "MICROBATCHES": self.microbatches,
                 "SIZE": self.replicas if self.others else 0, "OTHERS": self.others, "FIRST": first, "LAST": last, "FOLDER": folder,
                 "BATCHES": f"{{ {batches} }}", "WEIGHTS": lua(self.weights)}
        return re.sub("|".join(sorted(given, key=len, reverse=True)), lambda word: str(given[word[0]]), SCRIPT)

    def gradients(self, weights, rank, x, y):
        """Of each layer, of the sum over the rows of one rank."""
        outputs = [x]
        for w in weights:
            outputs.append(np.tanh(outputs[-1] @ w[rank].T))
        found, slope = [], 2 * (outputs[-1] - y)
        for i in reversed(range(LAYERS)):
            slope = slope * (1 - outputs[i + 1] ** 2)
            found.insert(0, slope.T @ outputs[i])
            slope = slope @ weights[i][rank]
        return found

    def wanted(self):
        """The mean of the replicas' weights."""
        weights = [np.stack([w] * self.replicas) for w in self.weights]
        velocity, states = [np.zeros_like(w) for w in weights], [self.hook.begin(w) for w in self.weights]
        part = self.rows // self.replicas
        for step, (x, y) in enumerate(self.batches, 1):
            each = [self.gradients(weights, r, x[r * part:][:part], y[r * part:][:part]) for r in range(self.replicas)]
            for i in range(LAYERS):
                g = np.stack([one[i] for one in each]) / (part if self.apart else self.rows)
                if not self.apart:
                    g, states[i] = self.hook.run(g, states[i])
                velocity[i] = 0.9 * velocity[i] + g
                weights[i] = weights[i] - LR * velocity[i]
                if self.apart and step % self.every == 0:
                    weights[i], states[i] = self.hook.run(weights[i], states[i])
        return np.concatenate([w.mean(axis=0).flatten() for w in weights])

    def trained(self, build):
        """The weights at the end, or why there are none."""
        with tempfile.TemporaryDirectory() as folder:
            for first, last in ((1, self.cut), (self.cut + 1, STEPS)) if self.cut else ((1, STEPS),):
                path = pathlib.Path(folder, "script.lua")
                path.write_text(self.script(f"{folder}/checkpoint", first, last))
                done = subprocess.run([build / "orrery", "run", "-n", str(self.ranks), path], text=True, capture_output=True, timeout=120)
                if done.returncode:
                    return f"ended with {done.returncode}: {done.stderr[-1000:]}"
        return np.array([float(line) for line in done.stdout.splitlines()])


def main():
    first, count = map(int, sys.argv[2:4] or (1, 300))
    wrong = 0
    for seed in range(first, first + count):
        case = Case(Dice(17 * 10**6 + seed))
        got, want = case.trained(pathlib.Path(sys.argv[1]).resolve()), case.wanted()
        if isinstance(got, str) or got.shape != want.shape or not np.allclose(got, want, rtol=1e-7, atol=1e-7):
            wrong += 1
            print(f"seed {seed}, {case.ranks} ranks, saved after {case.cut}:\n{got}\n{want}\n{case.script('FOLDER', 1, STEPS)}", flush=True)
    print(f"hooks: {count - wrong} of {count} are as NumPy says")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
