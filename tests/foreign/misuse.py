# SPDX-License-Identifier: Apache-2.0
"""Calls everything that docs/api.md lists with random wrong and odd arguments, in scripts, in traces, in hooks: whatever
comes is an error that names the script's line, or a result; never the end of the process, a hang, or words of C++.

Arguments: the build tree, then if given the first seed and how many.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/golden"))
from expressions import Dice  # noqa: E402

MEMORY, SECONDS = 6 << 30, 60
# Words of C++, of the library's files and of Lua's functions that are called in them.
INTERNAL = re.compile(r"assert|map::at|vector::|vector<|REQUIRES|basic_string|stoi|bad_alloc|bad_variant|bad_optional|std::|core/|\.cpp|"
                      r"terminate|Sanitizer|runtime error|orrery/[\w/]+\.lua:\d|bad argument|lua_")

PROLOGUE = """local orrery = require "orrery"
local nn, optim, strategy, data = orrery.nn, orrery.optim, orrery.strategy, orrery.data
local nan, inf, huge = 0 / 0, math.huge, 2 ^ 62 | 0
local function fails() error("my own error") end
local function same(...) return ... end
local circle = {}
circle[1], circle.me = circle, circle
local host, bytes = orrery.tensor { { 1.5, 2.5 }, { 3.5, 4.5 } }, orrery.tensor({ 1, 2, 3 }, "u8")
local none, ids = orrery.tensor({}, "f32"), orrery.tensor({ 0, 1 }, "i32")
local state, scalar = orrery.parameter({ 2, 2 }, { init = 1 }), orrery.input("rate", 0.5)
local buffer = orrery.buffer({ 2 }, { init = 0 })
local layer = nn.linear(2, 2)
local sgd, schedule = optim.sgd { lr = 0.1 }, optim.constant { peak = 0.1 }
local set = data.arrays { x = { { 1.5, 2 }, { 3, 4 }, { 5, 6 } }, y = { 1, 2, 3 } }
local text = data.text("hello world, hello", { ctx = 3, string = true })
local images = data.arrays { x = orrery.tensor({ { { { 1, 2 }, { 3, 4 } } } }, "f32") }
local tokens = data.tokenizer("text", { kind = "bytes" })
local stream = data.from(function() return function() return { x = 1 } end end)
local batch = set:batch(1, { size = 2 })
local field = batch.x
local function loss(b) return nn.mse(layer(b.x), b.x) end
local run = orrery.compile(loss, { params = layer, optimizer = sgd, microbatches = 2 })
local result = run:step(batch)
local attached = sgd:attach(layer)
local program = orrery.func(function(x) return x + 1 end)
local initial = nn.init.normal(0.1)
local tensor, draft, handle -- of traces that are over
program(host)
pcall(function()
  local keeps = strategy.define { name = "keeps", class = "exact", transform = function(d) draft = d end }
  orrery.compile(loss, { params = layer, optimizer = sgd, strategy = { keeps {} } }):step(batch)
end)
pcall(orrery.func(function(x) tensor = x + 1; return x end), host)
local world = orrery.world
handle = world:allreduce_async(host)
pcall(handle.wait, handle)
local function try(number, call)
  local ok, message = pcall(call)
  print(("call %d %s %s"):format(number, ok and "ok" or "error", (tostring(ok and "" or message):gsub("\\n", " "))))
end
"""
# Objects by the types that docs/api.md names; the first of each fits most calls.
OBJECTS = {
    "orrery.Tensor": ["host", "state", "scalar", "tensor", "field", "x", "x + 1", "bytes", "ids", "none", "buffer"],
    "orrery.HostTensor": ["host", "bytes", "ids", "none"], "orrery.State": ["state", "buffer", "layer.weight"], "orrery.Scalar": ["scalar"],
    "orrery.Run": ["run"], "orrery.StepResult": ["result"], "orrery.Field": ["field"], "orrery.Dataset": ["set", "text", "images"],
    "orrery.Tokenizer": ["tokens"], "orrery.World": ["world"], "orrery.Handle": ["handle"], "orrery.Stream": ["stream"],
    "orrery.Module": ["layer"], "orrery.Optimizer": ["sgd"], "orrery.Schedule": ["schedule"], "orrery.Initial": ["initial"],
    "orrery.Draft": ["draft"], "orrery.Strategy": ["strategy.data {}"], "orrery.Attached": ["attached"],
    "function": ["same", "fails", "loss", "function() end", "program"], "table": ["{}", "batch", "{ 1, 2 }", "{ x = host }", "{ set, set }"],
    "string": ["'x'", "'f32'", "'loss'", "'sum'", "''", "'blocks.*'", "'/nowhere/a.bin'"], "orrery.DType": ["'f32'", "'i64'", "'bool'", "'f33'"],
    "integer": ["1", "2", "0", "-1", "3", "2.0"], "number": ["0.5", "1", "0", "-1.5", "1e300"], "boolean": ["true", "false"],
    "integer[]": ["{ 1, 2 }", "{}", "{ 2, 2 }", "{ -1 }"], "any": ["host", "1", "{}", "nil"],
}
ODD = ["nil", "true", "false", "''", "'x'", "'\\0'", "('x'):rep(5000)", "0", "-1", "1.5", "0.1", "nan", "inf", "-inf", "huge", "-huge", "1e300", "1 << 40",
       "math.mininteger", "math.maxinteger", "{}", "{ nil, 2 }", "{ 1, nil, 3 }", "{ 'a' }", "{ {} }", "{ { 1 }, { 1, 2 } }", "{ [1.5] = 1 }",
       "{ 1, x = 2 }", "circle", "{ host }", "{ same }", "{ nan }", "{ huge, huge }", "{ -1, 0 }", "{ 1.5 }", "same", "fails", "print", "coroutine.wrap(same)",
       "setmetatable({}, { __index = fails })", "io.stdout", "orrery", "_G"]
# Where a call stands; CALL is the call, `x` a tensor where there is one.
PLACES = {
    "script": "CALL",
    "trace": "orrery.func(function(x) local made = CALL; return x end)(host)",
    "result": "orrery.func(function(x) return (CALL) end)(host)",
    "loss": "orrery.compile(function(b) local x = layer(b.x); local made = CALL; return x:mean() end, "
            "{ params = layer, optimizer = sgd }):step(batch)",
    "update": "orrery.compile(loss, { params = layer, optimizer = optim.define('mine', { update = function(x, g) local made = CALL; "
              "return x - g end }) {} }):step(batch)",
    "hook": "orrery.compile(loss, { params = layer, optimizer = sgd, strategy = { strategy.define { name = 'mine', class = 'approx', "
            "exchange = function(x) local made = CALL; return x end } {} } }):step(batch)",
    "transform": "orrery.compile(loss, { params = layer, optimizer = sgd, strategy = { strategy.define { name = 'mine', class = 'approx', "
                 "transform = function(d) draft = d; local x = host; local made = CALL end } {} } }):step(batch)",
    "module": "nn.module('M', function(m) local x = host; local made = CALL; return same end)()",
    "stream": "data.from(function() return function() local x = host; local made = CALL; return { x = 1 } end end):batches { size = 1, steps = 2 }()",
    "twice": "same((CALL), (CALL))",
    "nested": "orrery.func(function(x) orrery.func(function(x) return (CALL) end)(host); return x end)(host)",
    "coroutine": "coroutine.wrap(function() return (CALL) end)()",
}
# Where what is made is used; by the owner of its maker.
USES = {
    "nn": "orrery.func(function(x) return (CALL)(x) end)(host)",
    "optim": "orrery.compile(loss, { params = layer, optimizer = CALL }):step(batch)",
    "strategy": "orrery.compile(loss, { params = layer, optimizer = sgd, microbatches = 2, strategy = { CALL } }):step(batch)",
    "orrery": "(CALL)(host)",
}


class Entry:
    def __init__(self, call, options):
        self.owner, self.mark, self.name, inside = re.match(r"([\w.]+)([.:])(\w+)\((.*?)\)", call).groups()
        self.parameters = [p.strip() for p in inside.split(",") if p.strip()]
        self.options, self.types = options, {}

    def called(self):
        return f"{self.owner}{self.mark}{self.name}"


def entries():
    """Of docs/api.md; options are {name: type}."""
    found = []
    for line in (SOURCE / "docs/api.md").read_text().splitlines():
        if call := re.match(r"- \*\*`([^`]+\))[^`]*`\*\*", line):
            found.append(Entry(call[1], {}))
        elif option := re.match(r"  - `\{(\w+) = (.*)\}`", line):
            found[-1].options[option[1]] = option[2]
        elif parameter := re.match(r"  - `(\w+)` `(.*?)`", line):
            found[-1].types[parameter[1]] = parameter[2]
    return found


def value(dice, declared, odd):
    """An expression that fits a type as declared, or an odd one."""
    if dice.chance(odd):
        return dice.choice(ODD if dice.chance(0.7) else sum(OBJECTS.values(), []))
    kinds = [k for k in re.split(r"\|", declared) if k in OBJECTS] or ["any"]
    choices = OBJECTS[dice.choice(kinds)]
    return choices[0] if dice.chance(0.5) else dice.choice(choices)


GUESSES = {"dims": "integer[]", "dim": "integer", "size": "integer", "other": "orrery.Tensor", "x": "orrery.Tensor", "dtype": "orrery.DType",
           "options": "options", "index": "orrery.Tensor", "fn": "function", "path": "string", "name": "string", "model": "orrery.Module",
           "tensor": "orrery.Tensor", "batch": "table", "value": "orrery.Tensor", "y": "orrery.Tensor", "ids": "orrery.Tensor",
           "inputs": "integer", "outputs": "integer", "channels": "integer", "rate": "number", "step": "integer", "axis": "string",
           "fraction": "number", "rank": "integer", "text": "string", "parts": "table", "weights": "table", "values": "table"}


def arguments(dice, entry, odd):
    if dice.chance(0.05):
        return ", ".join(value(dice, "any", 0.7) for _ in range(dice.below(6)))
    given = []
    for parameter in entry.parameters:
        name = parameter.rstrip("?")
        if parameter == "...":
            given += [value(dice, "any|integer|orrery.Tensor", odd) for _ in range(dice.below(4))]
        elif name in ("options", "definition") and not dice.chance(odd / 3):
            fields = [f"{option} = {value(dice, kind, odd)}" for option, kind in entry.options.items() if dice.chance(0.4)]
            if dice.chance(0.05):
                fields.append("optionz = 1")
            given.append(f"{{ {', '.join(fields)} }}")
        else:
            given.append(value(dice, entry.types.get(name, GUESSES.get(name, "any")), odd))
    while given and entry.parameters and entry.parameters[-1].endswith("?") and dice.chance(0.3):
        given.pop()
        break
    return ", ".join(given)


def call(dice, entry):
    odd = dice.choice([0.1, 0.3, 0.6])
    given = arguments(dice, entry, odd)
    if entry.mark == ".":
        return f"{entry.called()}({given})"
    self = value(dice, f"orrery.{entry.owner}", 0.05)
    if re.fullmatch(r"[a-z][\w.]*", self) and self not in ("nil", "true", "false") and not self[0].isdigit() and not dice.chance(0.1):
        return f"{self}:{entry.name}({given})"
    return f"({dice.choice(OBJECTS.get(f'orrery.{entry.owner}', ['host']))}).{entry.name}({', '.join(filter(None, [self, given]))})"


# What is of another type than declared must be an error, whatever else may be.
WRONG = {"integer": ["1.5", "'a'", "true", "nan", "inf", "1e300", "{ 'a' }", "same"], "number": ["'a'", "true", "same", "host"],
         "boolean": ["0", "1", "'no'", "{}"], "string": ["true", "{}", "same"], "orrery.DType": ["'f31'", "1", "true", "{}"],
         "table": ["1", "'a'", "true"], "integer|integer[]": ["1.5", "'a'", "true", "{ 1.5 }", "{ 'a' }", "same"]}


# Of these, what is given is looked at when a step is built, or means something else than its name says.
LATER = ("Draft", "strategy.", "orrery.scan", "Stream:batches")


def strict(dice, entry):
    """A call with one wrong value; nothing if the types of the entry are not known."""
    def plausible(kind):
        return OBJECTS[re.split(r"\|", kind)[0] if re.split(r"\|", kind)[0] in OBJECTS else "any"][0]
    places = [(name, entry.types[name]) for name in (p.rstrip("?") for p in entry.parameters) if entry.types.get(name) in WRONG]
    places += [(name, GUESSES[name]) for name in (p.rstrip("?") for p in entry.parameters)
               if name not in entry.types and GUESSES.get(name) in ("integer", "string", "number", "orrery.DType")]
    places += [(f"options.{name}", kind) for name, kind in entry.options.items() if kind in WRONG]
    if not places or entry.called().startswith(LATER):
        return None
    place, kind = dice.choice(places)
    given = []
    for parameter in entry.parameters:
        name = parameter.rstrip("?")
        declared = entry.types.get(name, GUESSES.get(name, "any"))
        if name in ("options", "definition") and entry.options:
            fields = [f"{option} = {dice.choice(WRONG[kind]) if place == f'options.{option}' else plausible(its)}"
                      for option, its in entry.options.items() if place == f"options.{option}" or dice.chance(0.2)]
            given.append(f"{{ {', '.join(fields)} }}")
        elif name != "...":
            given.append(dice.choice(WRONG[kind]) if place == name else plausible(declared) if declared != "options" else "{}")
    self = f"{OBJECTS.get(f'orrery.{entry.owner}', ['host'])[0]}:{entry.name}" if entry.mark == ":" else entry.called()
    return f"{self}({', '.join(given)})"


class Case:
    def __init__(self, seed, table):
        dice = Dice(31 * 10**6 + seed)
        self.ranks = dice.choice([1, 1, 1, 1, 2])
        self.calls, self.refused = [], set()
        for number in range(1, 5):
            entry = dice.choice(table)
            if dice.chance(0.5) and (made := strict(dice, entry)):
                self.refused.add(number)
                traced = entry.owner in ("Tensor", "orrery")
                self.calls.append(PLACES["trace"].replace("CALL", re.sub(r"\bhost\b", "x", made)) if traced else made)
                continue
            made = call(dice, entry)
            if entry.owner in USES and dice.chance(0.4):
                self.calls.append(USES[entry.owner].replace("CALL", re.sub(r"\bx\b(?! =)(?!')", "host", made)))
                continue
            place = dice.choice(list(PLACES)) if dice.chance(0.6) else "script"
            made = re.sub(r"\bx\b(?! =)(?!')", "host", made) if place in ("script", "twice", "coroutine") else made
            self.calls.append(PLACES[place].replace("CALL", made))
        self.text = PROLOGUE + "".join(f"try({i}, function() return {made} end)\n" for i, made in enumerate(self.calls, 1)) + "print('end')\n"

    def wrong(self, build):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "case.lua")
            path.write_text(self.text)
            command = f"ulimit -v {MEMORY >> 10}; exec '{build}/orrery' run -n {self.ranks} --threads 1 case.lua"
            environment = {**os.environ, "ORRERY_DEADLINE": "15", "ORRERY_PIN": "none", "ORRERY_NO_DIR": "1"}
            try:
                done = subprocess.run(["bash", "-c", command], cwd=folder, text=True, errors="replace", capture_output=True,
                                      timeout=SECONDS, env=environment, stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired as late:
                return [f"hangs: {(late.stdout or b'')[-300:]}"]
        found = []
        for number, how, message in re.findall(r"^call (\d) (\w+) (.*)$", done.stdout, re.MULTILINE):
            own = "my own error" in message
            if how == "ok" and int(number) in self.refused:
                found.append(f"call {number}: accepted: {self.calls[int(number) - 1]}")
            if how == "error" and not own and INTERNAL.search(message) and "on a HostTensor value" not in message:
                found.append(f"call {number}: words: {message}")
            elif how == "error" and not re.search(r"case\.lua:\d+: ", message) and not own:
                found.append(f"call {number}: no line: {message}")
        apart = self.ranks > 1 and done.returncode == 75 and "world" in self.text[len(PROLOGUE):]  # an error of one rank alone
        if done.returncode and not apart and (done.returncode not in (1, 2) or "error:" not in done.stderr or self.ranks == 1 and "end\n" not in done.stdout):
            found.append(f"ended with {done.returncode}: {done.stderr[-1500:]}")
        elif done.returncode and INTERNAL.search(done.stderr):
            found.append(f"words: {done.stderr[-1500:]}")
        return found


def main():
    first, count = map(int, sys.argv[2:4] or (1, 1000))
    build, table, wrong = pathlib.Path(sys.argv[1]).resolve(), entries(), 0
    for seed in range(first, first + count):
        case = Case(seed, table)
        if lines := case.wrong(build):
            wrong += 1
            print(f"seed {seed}, {case.ranks} ranks:", *lines, *case.calls, sep="\n  ", flush=True)
    print(f"misuse: {count - wrong} of {count} scripts end as they should")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
