# SPDX-License-Identifier: Apache-2.0
"""Runs scripts of random models, many in one process, and says what they print that they should not.

Seeds are of models by turns of random_models.py and random_transformers.py, each with a stack of random_stacks.py.
"""
import math
import pathlib
import re
import subprocess
import tempfile

from expressions import Dice
from random_models import Model
from random_stacks import stack_of
from random_transformers import Transformer

RECORDED = 160

# Runs the scripts 1.lua, 2.lua, ... of the folder in turn; an error ends its script alone.
RUNNER = """local orrery = require 'orrery'
for i = 1, {count} do
  orrery.log('script %d', i)
  local path = ("{folder}/%d.lua"):format(i)
  local file <close> = assert(io.open(path))
  local ok, message = pcall(assert(load(file:read "a", "@" .. path)))
  if not ok then print('error ' .. tostring(message)) end
end
"""


def model_of(seed):
    return (Transformer if seed % 2 else Model)(seed)


def condensed(figures):
    """Of (steps, evaluation, states): tensors of many elements as two numbers, all with ten digits."""
    def short(numbers):
        if len(numbers) > 4:
            numbers = [sum(numbers), sum(x * math.cos(i) for i, x in enumerate(numbers))]
        return [float(f"{x:.10g}") for x in numbers]
    steps, after, states = figures
    return [short(pair) for pair in steps], short([after])[0], {name: short(numbers) for name, numbers in states.items()}


def outputs(build, scripts, ranks=1, timeout=120):
    """What each script prints, as text; None where the process ended before."""
    with tempfile.TemporaryDirectory() as folder:
        for i, script in enumerate(scripts, 1):
            pathlib.Path(folder, f"{i}.lua").write_text(script)
        runner = pathlib.Path(folder, "runner.lua")
        runner.write_text(RUNNER.format(count=len(scripts), folder=folder))
        try:
            run = subprocess.run([build / "orrery", "run", "-n", str(ranks), runner], text=True, capture_output=True, timeout=timeout)
            out, end = run.stdout, "" if run.returncode == 0 else f"ended with {run.returncode}: {run.stderr[-2000:]}"
        except subprocess.TimeoutExpired as late:
            out, end = (late.stdout or b"").decode(), f"hangs; {(late.stderr or b'').decode()[-2000:]}"
    parts = re.split(r"^script \d+\n", out, flags=re.MULTILINE)[1:]
    if end and parts:
        parts[-1] = f"crash {end}"
    elif end:
        parts = [f"crash {end}"]
    return parts + [None] * (len(scripts) - len(parts))


def all_outputs(build, scripts, ranks=1):
    """The same, where a script that ends the process or parts its ranks takes no other with it."""
    found = outputs(build, scripts, ranks)
    if len(scripts) == 1 or all(o is not None and "crash" not in o and "ranks post different" not in o for o in found):
        return found
    half = len(scripts) // 2
    return all_outputs(build, scripts[:half], ranks) + all_outputs(build, scripts[half:], ranks)


def refusal(output):
    found = re.search(r"^error (.*)", output, re.MULTILINE | re.DOTALL)
    return found and found[1]


def differences(output, want, tolerance):
    """Lines about what is wrong; none if all is near. `want` is condensed."""
    lines = {"step": [], "eval": [], "state": []}
    for word, rest in re.findall(r"^(step|eval|state) (.*)$", output, re.MULTILINE):
        lines[word].append(rest)
    named = dict(line.split(" ", 1) for line in lines["state"])
    if len(lines["step"]) != len(want[0]) or len(lines["eval"]) != 1 or named.keys() != want[2].keys():
        return [f"printed {output[-1500:]}"]

    def numbers(text):
        return [float(x) for x in text.split()]
    return apart(condensed(([numbers(line) for line in lines["step"]], float(lines["eval"][0]),
                            {name: numbers(line) for name, line in named.items()})), want, tolerance)


def apart(found, want, tolerance):
    """Lines about figures that are not near those that are wanted."""
    steps, after, states = found

    def near(got, right):
        return len(got) == len(right) and all(abs(g - r) <= tolerance * max(1, abs(r)) or (g != g and r != r) for g, r in zip(got, right))
    wrong = [f"step {i}: {got}, not {right}" for i, (got, right) in enumerate(zip(steps, want[0]), 1) if not near(got, right)]
    wrong += [f"eval: {after}, not {want[1]}"] if not near([after], [want[1]]) else []
    return wrong + [f"{name}: {states[name]}, not {right}" for name, right in want[2].items() if not near(states[name], right)]


class Judge:
    """Runs models under their stacks, gathered by the number of ranks, and counts what comes of them."""

    def __init__(self, build, wanted, report, stacked=True, together=25):
        self.build, self.wanted, self.report, self.stacked, self.together = build, wanted, report, stacked, together
        self.waiting, self.trained, self.refused, self.wrong = {}, 0, {}, []

    def take(self, seed):
        model = model_of(seed)
        kind, ranks, strategy = stack_of(Dice(7 * 10**6 + seed), model) if self.stacked else ("none", 1, "")
        self.waiting.setdefault(ranks, []).append((seed, model, kind, strategy))
        if len(self.waiting[ranks]) == self.together:
            self.judge(ranks)

    def finish(self):
        for ranks in list(self.waiting):
            self.judge(ranks)

    def judge(self, ranks):
        given = self.waiting.pop(ranks)
        found = all_outputs(self.build, [model.script(strategy) for _, model, _, strategy in given], ranks)
        for (seed, model, kind, strategy), output in zip(given, found):
            if why := refusal(output):
                self.refused[seed] = (kind, strategy, why)
                continue
            wrong = [output] if "crash" in output else differences(output, self.wanted(seed, model), model.tolerance)
            if not wrong:
                self.trained += 1
                continue
            self.wrong.append(seed)
            self.report(model, f"seed {seed}, {ranks} ranks, {strategy or 'no stack'}:\n" + "\n".join(wrong) + "\n" + model.script(strategy))
