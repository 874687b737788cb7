# SPDX-License-Identifier: Apache-2.0
"""What a random history (histories.py) trains: a model of tests/golden/random_draws.py, on shuffled datasets or a stream,
with averages of its weights and a parameter that the script writes between two steps, saved in a series or by hand; and
the stacks of strategies that may train it.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from expressions import literal  # noqa: E402
from random_draws import drawing_model  # noqa: E402
from random_stacks import chosen  # noqa: E402

NOT_EXACT = ("strategy.tensor", "strategy.context", "strategy.expert")
APART = ["strategy.average { every = 2 }", "strategy.average { every = 3, states = true }", "strategy.diloco { every = 3 }",
         "strategy.easgd { every = 2, alpha = 0.2 }", "strategy.gossip { every = 2 }"]
COMPRESSED = ["strategy.topk { fraction = 3 }", "strategy.powersgd { rank = 1 }", "strategy.quantized { bits = 8 }",
              "strategy.quantized { bits = 1 }", "strategy.adasum {}"]
SCRIPT = """local orrery = require 'orrery'
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { folder = '', stack = '', steps = 0 }
orrery.seed(SEED)
local kept = {}
MODEL
local run = orrery.compile(model, { params = model, microbatches = MICROBATCHES, clip = CLIP, optimizer = OPTIMIZER,
  strategy = load('local strategy = ... return {' .. args.stack .. '}')(strategy) })
local data = DATA
local average = {}
for i, p in ipairs(orrery.parameters(model)) do
  average[i] = orrery.buffer(p.shape, { dtype = p.dtype, name = 'average.' .. i, init = 0 })
end
local follow = orrery.func(function()
  for i, p in ipairs(orrery.parameters(model)) do average[i]:update(average[i] * 0.75 + p * 0.25) end
end)
BEGIN
orrery.log('from %d', run.steps)
for step, batch in data:batches { size = SIZE, steps = args.steps, from = run.steps + 1 } do
  local result = run:step(batch)
  orrery.log('step %d %.17g %.17g', step, result:mean(), result:get 'grad_norm')
  local enough = orrery.time() + 0.003 -- for a blow to come in time
  while orrery.time() < enough do end
  BETWEEN
end
END
orrery.log('digest %s', orrery.digest(model))
"""
SERIES = "run:checkpoints { dir = args.folder .. '/saved', every = EVERY, keep = KEEP, best = 'BEST' }"
BY_HAND = """local saved = io.open(args.folder .. '/saved/checkpoint.json')
if saved then saved:close() run:load(args.folder .. '/saved') end"""


class Script:
    """`exact`: of stacks that train what one process trains; else of one stack alone."""

    def __init__(self, dice, exact):
        self.dice, self.exact = dice, exact
        self.model = model = self.random_model()
        self.steps, self.every, self.keep = 5 + dice.below(16), 1 + dice.below(4), dice.choice([0, 1, 2, 2, 3])
        self.best, self.series = dice.choice(["", "", "loss", "grad_norm"]), dice.chance(0.7)
        self.size = max(model.microbatches, 1 + dice.below(2 * model.batch))
        self.rows = self.size + dice.below(20)
        self.follows, self.writes = dice.chance(0.5), dice.chance(0.4)
        self.base = self.precision() if model.dtype == "f32" and dice.chance(0.6) else ""
        self.stacks = self.made_stacks()
        self.text = self.made()

    def random_model(self):
        """One of which ranks that train something else than one process can share the batch."""
        while True:
            model = drawing_model(self.dice.below(10 ** 6))
            if self.exact or model.microbatches > 1:
                return model

    def precision(self):
        return self.dice.choice(["strategy.precision {}", "strategy.precision { compute = 'f16', growth_interval = 3 }",
                                 "strategy.precision { wire = 'f32' }", "strategy.precision { compute = 'f32', wire = 'bf16' }"])

    def stack(self, *parts):
        return ", ".join(part for part in (*parts, self.base) if part)

    def made_stacks(self):
        """[(ranks, stack)], the first that of the judge."""
        if not self.exact:
            return [self.one_alone()]
        found = [(1, self.stack())]
        while len(found) < 3:
            ranks, stack = self.random_stack()
            if not any(part in stack for part in NOT_EXACT):
                found.append((ranks, stack))
        return found

    def random_stack(self):
        _, ranks, parts = chosen(self.dice, self.model)
        if self.dice.chance(0.1) and self.model.microbatches > 1:
            ranks, parts = 2, ["strategy.server { mode = 'stale', bound = 0 }"]
        modules = [f"'{name}'" for name, _ in self.model.modules]
        half = len(modules) // 2
        sides = f"{{ {', '.join(modules[:half])} }}, {{ {', '.join(modules[half:])} }}"
        return ranks, self.stack(*parts).replace("PLACE", f"strategy.place {{ modules = {{ {sides} }} }}")

    def one_alone(self):
        shared = self.dice.choice([n for n in (2, 3, 4) if n <= self.model.microbatches])
        kind = self.dice.below(3)
        if kind == 0:
            for _ in range(30):
                ranks, stack = self.random_stack()
                if any(part in stack for part in NOT_EXACT):
                    return ranks, stack
        if kind == 2:
            self.follows = False  # ranks apart hold what a function may not change
        inner, more = "", 1
        if shared == 2 and self.dice.chance(0.4):
            inner, more = self.dice.choice(["strategy.data {}, strategy.zero { stage = 3 }", "strategy.pipeline {}"]), 2
        own = self.dice.choice(COMPRESSED if kind == 1 else APART)
        return shared * more, self.stack(own.replace("{", "{ size = 2," if more == 2 else "{"), inner)

    # -- the text --------------------------------------------------------------------------------
    def made(self):
        model = self.model
        optimizer = model.optimizer.lua().replace("steps = 4", f"steps = {self.steps}")
        between = ["if step % 3 == 0 then run:eval(batch) end"] if self.exact and self.dice.chance(0.3) else []
        between += ["follow()"] if self.follows else []
        if self.writes:
            name, (shape, numbers) = self.dice.choice(list(model.parameters.items()))
            some = [round(x + 0.1, 4) for x in numbers]
            between.append(f"if step == {2 + self.dice.below(self.steps - 2)} then model.{model.path(name)}:write("
                           f"orrery.tensor({literal(shape, iter(some))}, '{model.dtype}')) end")
        if not self.series:
            between.append(f"if step % {self.every} == 0 then run:save(args.folder .. '/saved', '', {self.dice.choice(['true', 'false'])}) end")
        series = SERIES.replace("EVERY", str(self.every)).replace("KEEP", str(self.keep)).replace("BEST", self.best)
        end = "run:finish_save()\nrun:save(args.folder .. '/final')" if self.series else "run:save(args.folder .. '/saved')"
        given = {"SEED": self.dice.below(1000), "MODEL": "\n".join(self.model_lines()), "MICROBATCHES": model.microbatches,
                 "CLIP": model.clip, "OPTIMIZER": optimizer, "DATA": self.data(), "SIZE": self.size,
                 "BEGIN": series if self.series else BY_HAND, "BETWEEN": "\n  ".join(between), "END": end}
        text = SCRIPT
        for word, value in given.items():
            text = text.replace(word, str(value), 1)
        return text

    def model_lines(self):
        model, fields = self.model, self.model.batch_fields()
        lines = []
        for n, (shape, numbers) in model.indices.items():
            if n not in fields:
                lines += [f"kept.{n} = orrery.buffer({{ {', '.join(map(str, shape))} }}, {{ dtype = 'i64', name = 'kept.{n}' }})",
                          f"kept.{n}:write(orrery.tensor({literal(shape, iter(numbers))}, 'i64'))"]
        lines += model.model()
        lines += [f"model.{model.path(n)}:write(orrery.tensor({literal(shape, iter(numbers))}, '{model.dtype}'))"
                  for n, (shape, numbers) in model.parameters.items()]
        return lines + model.optimizer.freezing()

    def sample_rows(self):
        """{field: [literal of each sample]}, where no two samples are alike."""
        found = {}
        for name, (shape, numbers) in self.model.batch_fields().items():
            each = len(numbers) // shape[0]
            some = []
            for row in range(self.rows):
                at = self.dice.below(shape[0]) * each
                values = numbers[at:at + each]
                if name in self.model.fields:
                    values = [round(x + 0.01 * row, 4) for x in values]
                some.append(literal(shape[1:], iter(values)))
            found[name] = some
        return found

    def data(self):
        rows, model = self.sample_rows(), self.model
        dtypes = {name: model.dtype if name in model.fields else "i32" for name in rows}
        arrays = ", ".join(f"{n} = orrery.tensor({{ {', '.join(map(str, some))} }}, '{dtypes[n]}')" for n, some in rows.items())
        whole = f"orrery.data.arrays {{ {arrays} }}"
        kind = self.dice.below(4)
        if kind == 0:
            return f"orrery.data.mix({{ ({whole}):split(0.5) }}, {{ 2, 1 }})" if self.rows > 5 else whole
        if kind > 1:
            return whole
        samples = ", ".join(f"{{ {', '.join(f'{n} = {some[i]}' for n, some in rows.items())} }}" for i in range(self.rows))
        given = ", ".join(f"{n} = '{dtype}'" for n, dtype in dtypes.items())
        return (f"orrery.data.from(function() local all, i = {{ {samples} }}, 0 return function() i = i + 1 return all[i] end end, "
                f"{{ dtypes = {{ {given} }}, shuffle = {self.dice.choice([0, 5])} }})")
