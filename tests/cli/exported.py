# SPDX-License-Identifier: Apache-2.0
"""The run that tests of exports write, and what all of them must have: numbers of every kind, in two runs of a script."""
import math

ARGUMENTS = {"lr": "0.05", "layers": "3", "note": "a <b> \"c\"", "deep": "true"}
SCRIPT = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { lr = 0.1, layers = 1, note = "", deep = false, fail = false }
local batch = { x = orrery.tensor { { 1.0 }, { 2.0 }, { 3.0 } }, y = orrery.tensor { { 3.0 }, { 5.0 }, { 7.0 } } }
local function make(name)
  local model = nn.linear(1, 1)
  return orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
    { params = model, optimizer = optim.sgd { lr = args.lr }, microbatches = 3, name = name })
end
local run, critic = make(), make "critic"
for i = 1, 5 do
  run:step(batch)
  critic:step(batch)
  critic:record("penalty", i / 8)
  orrery.record("valid", { accuracy = i / 4, ["größe"] = -i })
  orrery.record("odd", i == 2 and 0 / 0 or i == 3 and math.huge or i == 4 and -math.huge or i)
end
run:eval(batch)
if args.fail then error "asked to fail" end
"""
OWN = {"valid/accuracy": [(i, i / 4) for i in range(1, 6)], "valid/größe": [(i, -i) for i in range(1, 6)],
       "odd": [(1, 1), (2, math.nan), (3, math.inf), (4, -math.inf), (5, 5)]}
CRITIC = {"penalty": [(i, i / 8) for i in range(1, 6)]}
EVERY = ("loss", "grad_norm", "learning_rate", "samples_per_second", "seconds", "resident_bytes")


def same(a, b):
    return a == b or math.isnan(a) and math.isnan(b)


def check(found, own):
    """`found`: {name: [(step, value)]} of a run; `own`: what its script has recorded beside the numbers of steps."""
    for name, values in own.items():
        got = found[name]
        assert [step for step, _ in got] == [step for step, _ in values], (name, got)
        assert all(same(a, b) for (_, a), (_, b) in zip(got, values)), (name, got)
    for name in EVERY:
        assert [step for step, _ in found[name]] == [1, 2, 3, 4, 5], (name, found.get(name))
    assert all(abs(value - 0.05) < 1e-7 for _, value in found["learning_rate"]), found["learning_rate"]
    if own is OWN:
        assert [step for step, _ in found["eval/loss"]] == [5]


def words(place, exports):
    """The arguments of orrery that write the run to `place`, and to `exports`."""
    return ("--dir", str(place), *(word for name, value in exports.items() for word in ("--observe", f"{name}={value}")))


def given(fail=False):
    return [f"{name}={value}" for name, value in ARGUMENTS.items()] + (["fail=true"] if fail else [])
