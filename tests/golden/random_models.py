# SPDX-License-Identifier: Apache-2.0
"""Random models, each as a script of Orrery's and as lines of PyTorch's: layers of random_layers.py and ops of
expressions.py, batches of several sizes, losses of several terms, optimizers with groups and schedules.

`Model(seed)` is the same on every machine. `script()` trains it and prints for each step the loss and the norm of the
gradients, then the loss in evaluation, the states and the parameters; random_models_record.py says what it should print.
"""
import math
import re

from expressions import Dice, Loss, Value, literal
from random_layers import Layers
from random_optimizers import Optimizer

STEPS = 3
SIZES = [(), (3,), (2, 3), (4, 3), (1, 4), (5, 2), (2, 5), (4, 4), (2, 4, 3), (3, 5, 4), (4, 3, 3), (2, 2, 3, 3)]


class Model(Layers, Loss):
    sequences = False

    def __init__(self, seed, dtype=None):
        dice = self.dice = Dice(10**6 + seed)
        self.start(dtype)
        self.batch = dice.choice([2, 3, 4, 5, 6, 8])
        for _ in range(1 + dice.below(3)):
            self.input(self.fields, "x", (self.batch, *dice.choice(SIZES)), 1)
        for _ in range(1 + dice.below(3)):
            self.parameter(dice.choice([(), (3,), (2, 3), (4,), (5, 3)]))
        for _ in range(2 + dice.below(9)):
            self.grow()
        self.microbatches = dice.choice([m for m in (1, 2, 3, 4) if m <= self.batch])
        fewer = [self.batch, self.batch, max(self.microbatches, 1 + dice.below(self.batch))]
        self.sizes = [self.batch] + [dice.choice(fewer) for _ in range(STEPS - 1)]
        self.close()
        self.watch()
        self.optimizer = Optimizer(dice, list(self.parameters), self.path)
        self.clip = dice.choice([0, 0, 0.5])

    def start(self, dtype):
        self.values, self.lua, self.torch = [], [], []
        self.parameters, self.fields, self.indices = {}, {}, {}
        self.outputs, self.written = [], None
        self.modules, self.repeatable, self.losses, self.states, self.buffers = [], [], [], {}, []
        self.dtype = dtype or self.dice.choice(["f64", "f64", "f32"])
        self.tolerance, self.whole = {"f64": 1e-5, "f32": 3e-4}[self.dtype], False  # rates and norms are f32

    # -- instead of the Loss's -------------------------------------------------------------------
    def path(self, name):
        """The path in the model of a parameter."""
        return re.sub(r"^(l\d+)_(router_)?", lambda m: m[0].replace("_", "."), name)

    def has_experts(self):
        return any("nn.switch" in make for _, make in self.modules)

    def parameter(self, shape):
        same = [n for n, (s, _) in self.parameters.items() if tuple(s) == tuple(shape)]
        if same and self.dice.chance(0.3):
            return Value(self.dice.choice(same), shape, 0)
        return super().parameter(shape)

    def grow(self):
        if self.dice.chance(0.45):
            return super().grow()
        values = [v for v in self.values if v.batched]
        x = self.dice.choice(values[-4:] if self.dice.chance(0.7) else values)
        if math.prod(x.shape) <= 600:
            self.layer(x)

    # -- the loss --------------------------------------------------------------------------------
    def is_read(self, name):
        return any(re.search(rf"\b{name}\b", line.split(" = ", 1)[-1]) for line in self.lua)

    def close(self):
        """A mean over samples of a sum of all that nothing reads, and further terms."""
        ends = [v for v in self.values if not self.is_read(v.name)] or self.values[-1:]
        ends += [v for v in self.values if v.name == "x0" and v not in ends]
        terms = []
        for v in ends:
            inner = list(range(v.batched, len(v.shape)))
            lua = f"{v.name}:tanh()" + (f":sum({{ {', '.join(str(d + 1) for d in inner)} }})" if inner else "")
            self.lua.append(f"local s_{v.name} = {lua}")
            self.torch.append(f"s_{v.name} = {v.name}.tanh()" + (f".sum({tuple(inner)})" if inner else ""))
            terms.append(f"s_{v.name}")
        self.cross_entropy = None
        if self.dice.chance(0.4):
            self.classes()
        if self.dice.chance(0.3) and not self.cross_entropy:
            v = self.dice.choice([v for v in self.values if v.batched])
            self.losses.append((f"nn.mse({v.name}:tanh(), 0.25)", f"((({v.name}.tanh() - 0.25) ** 2).mean())"))
        total = " + ".join(terms) + f" + {terms[0]} * {terms[-1]}"
        self.lua.append(f"local total = {total}")
        self.torch.append(f"total = {total}")
        lua, torch = self.cross_entropy or ("total:mean()", "total.mean()")
        self.lua.append(f"return {lua}" + "".join(f" + {lua}" for lua, _ in self.losses))
        self.torch.append(f"loss = {torch}" + "".join(f" + {torch}" for _, torch in self.losses))

    def watch(self):
        """Further results of a step, and a parameter that is written between the first two."""
        for _ in range(self.dice.choice([0, 0, 1, 2])):
            v = self.dice.choice(self.values)
            self.outputs.append(self.dice.choice([(v.name, v.name), (f"{v.name}:sum()", f"{v.name}.sum()"),
                                                  (f"{v.name}:mean()", f"{v.name}.mean()")]))
        if self.outputs:
            given = ", ".join(f"a{i} = {lua}" for i, (lua, _) in enumerate(self.outputs))
            self.lua[-1] += f", {{ {given} }}"
            self.torch.append(f"outputs = [{', '.join(torch for _, torch in self.outputs)}]")
        if self.dice.chance(0.2):
            name = self.dice.choice(list(self.parameters))
            self.written = (name, [round(self.dice.normal(), 4) for _ in self.parameters[name][1]])

    def classes(self):
        """A cross-entropy of some value: of several terms, or of another mean than theirs alone, with logits of all."""
        some = [v for v in self.values if v.batched and len(v.shape) >= 2 and v.shape[-1] >= 2]
        if not some:
            return
        v = self.dice.choice(some)
        i = self.index(v.shape[:-1], v.shape[-1])
        shape, labels = self.indices[i]
        options, weights = [], None
        if len(shape) > 1 and shape[-1] > 1 and self.dice.chance(0.5):
            self.indices[i] = (shape, [-1 if n % shape[-1] and self.dice.chance(0.4) else y for n, y in enumerate(labels)])
            options.append("ignore = -1")
        if self.dice.chance(0.4):
            weights = self.input(self.fields, "x", shape, 1).name
            options.append(f"weights = {weights}:abs() + 0.1")
        given = f"T.cross_entropy(%s, {i}, {weights and f'{weights}.abs() + 0.1'})"
        lua, ones = f"nn.cross_entropy(%s, batch.{i}, {{ {', '.join(options)} }})", ", 1" * (len(v.shape) - 1)
        if not options:
            return self.losses.append((lua % v.name, given % v.name))
        self.losses = [l for l in self.losses if "mean" not in l[0] and "aux" not in l[0]]
        self.cross_entropy = (lua % f"{v.name} * (total:tanh() + 2):reshape(-1{ones})", given % f"{v.name} * (total.tanh() + 2).reshape(-1{ones})")

    # -- what is made of it ----------------------------------------------------------------------
    def batch_fields(self):
        return self.fields | {n: v for n, v in self.indices.items() if any(re.search(rf"batch\.{n}\b", l) for l in self.lua)}

    def rows(self, step, shape, numbers):
        """Of a field the samples of a step, from 0: as many as it has, beginning with another one."""
        each, count = math.prod(shape[1:]), self.sizes[step]
        order = [(r + step) % self.batch for r in range(count)]
        return (count, *shape[1:]), [numbers[r * each + j] for r in order for j in range(each)]

    def model(self):
        lines = ["local Model = nn.module('Model', function(m)"]
        lines += [f"  m.{n} = nn.parameter({{ {', '.join(map(str, shape))} }}, {{ dtype = '{self.dtype}' }})"
                  for n, (shape, _) in self.parameters.items() if self.path(n) == n]
        lines += [f"  m.{n} = orrery.buffer({{}}, {{ dtype = '{self.dtype}' }})" for n in self.buffers]
        lines += [f"  m.{n} = {make}" for n, make in self.modules]
        lines.append("  return function(batch)")
        lines += [f"    local {n} = m.{self.path(n)}" for n in self.parameters]
        lines += [f"    local {n} = batch.{n}" for n in self.fields]
        lines += ["    " + line for line in self.lua]
        return lines + ["  end", "end)", "local model = Model()"]

    def script(self, strategy=""):
        """`strategy`: Lua of compile's option, if any."""
        fields = self.batch_fields()
        lines = ["local orrery = require 'orrery'", "local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy",
                 "local kept = {}"]
        for n, (shape, numbers) in self.indices.items():
            if n not in fields:
                lines.append(f"kept.{n} = orrery.buffer({{ {', '.join(map(str, shape))} }}, {{ dtype = 'i64' }})")
                lines.append(f"kept.{n}:write(orrery.tensor({literal(shape, iter(numbers))}, 'i64'))")
        lines += self.model()
        for n, (shape, numbers) in self.parameters.items():
            lines.append(f"model.{self.path(n)}:write(orrery.tensor({literal(shape, iter(numbers))}, '{self.dtype}'))")
        lines += self.optimizer.freezing()
        clip = f"clip = {self.clip}, " if self.clip else ""
        lines.append(f"local run = orrery.compile(model, {{ params = model, microbatches = {self.microbatches}, {clip}{strategy}"
                     f"optimizer = {self.optimizer.lua()} }})")
        lines.append("local batches = {")
        for step in range(STEPS):
            given = [f"{n} = orrery.tensor({literal(*self.literal_rows(step, *v))}, '{self.dtype if n in self.fields else 'i32'}')"
                     for n, v in fields.items()]
            lines.append(f"  {{ {', '.join(given)} }},")
        lines += ["}", "local function show(name, values)", "  local numbers = {}",
                  "  local function add(x) if type(x) == 'table' then for _, y in ipairs(x) do add(y) end else numbers[#numbers + 1] = ('%.15g'):format(x) end end",
                  "  add(type(values) == 'number' and values or values:tolist())",
                  "  orrery.log('state %s %s', name, table.concat(numbers, ' '))", "end",
                  "for i, batch in ipairs(batches) do", "  local result = run:step(batch)",
                  "  orrery.log('step %.15g %.15g', result:mean(), result:get 'grad_norm')"]
        lines += [f"  show('step' .. i .. '_a{i}', result:get 'a{i}')" for i in range(len(self.outputs))]
        if self.written:
            name, numbers = self.written
            given = literal(self.parameters[name][0], iter(numbers))
            lines.append(f"  if i == 1 then model.{self.path(name)}:write(orrery.tensor({given}, '{self.dtype}')) end")
        lines += ["end", "orrery.log('eval %.15g', run:eval(batches[1]):mean())"]
        lines += [f"show('{n}', model.{self.path(n)}:read())" for n in [*self.parameters, *self.states]]
        return "\n".join(lines) + "\n"

    def literal_rows(self, step, shape, numbers):
        shape, numbers = self.rows(step, shape, numbers)
        return shape, iter(numbers)
