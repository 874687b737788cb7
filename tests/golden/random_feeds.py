# SPDX-License-Identifier: Apache-2.0
"""Training steps fed by random datasets (random_data.py): which rows the steps see, on any number of ranks, and saved on
the way and taken on by others.

A script prints a line for each field of each batch: of training, of evaluations in between, of batches that are read as
a whole. `wrong()` says what of it docs/data.md does not allow.
"""
import collections
import math

from expressions import Dice
from random_data import random_data, variants
from random_runs import all_outputs, refusal
from random_streams import random_stream

SCRIPT = """local orrery = require "orrery"
local data = orrery.data
local function part(k, ...) return (select(k, ...)) end
local function numbers(x, all)
  if type(x) == "table" then
    for _, each in ipairs(x) do numbers(each, all) end
  else
    if type(x) == "boolean" then x = x and 1 or 0 end
    all[#all + 1] = math.type(x) == "integer" and ("%d"):format(x) or ("%.17g"):format(x)
  end
  return all
end
local function show(word, step, field, x)
  orrery.log("%s %d %s %s %s %s", word, step, field, x.dtype, tostring(x.shape), table.concat(numbers(x:tolist(), {}), " "))
end
local function show_all(word, step, batch)
  for field, x in pairs(batch) do show(word, step, field, orrery.type(x) == "Field" and x:read() or x) end
end
orrery.seed(SEED)
DECLARED
local p = orrery.parameter({}, { init = 1.5 })
local run = orrery.compile(function(batch)
  local all = {}
  for field, x in pairs(batch) do all[field] = x end
  local sizes = 0 -- of each sample
  for _, x in pairs(batch) do
    local y = x:cast "f32" * 1e-6
    sizes = sizes + (#x.shape > 1 and y:reshape({ x.shape[1], -1 }):sum(2) or y)
  end
  return (sizes * p):mean(), all
end, { params = { p = p }, optimizer = orrery.optim.sgd { lr = 0 }, microbatches = MICROBATCHES, strategy = { STRATEGY } })
local function fed(word, step, result)
  for _, name in ipairs(result:names()) do
    local x = result:get(name)
    if orrery.type(x) == "HostTensor" then show(word, step, name, x) end
  end
  orrery.log("%s %d loss f64 [1] %.17g", word, step, result:mean())
end
if FIRST > 1 then run:load "FOLDER/saved" end
LOOP
if LAST < STEPS then run:save "FOLDER/saved" end
"""


def read(output):
    """What was printed: {(word, step): {field: (dtype, dims, rows)}}."""
    seen = {}
    for line in output.splitlines():
        word, step, field, dtype, shape, *rest = line.split(" ", 5)
        dims = [int(d) for d in shape.strip("[]").split(",") if d]
        flat = [float(x) if set(x) & set(".en") else int(x) for x in rest[0].split()] if rest else []
        size = math.prod(dims[1:])
        seen.setdefault((word, int(step)), {})[field] = (dtype, dims[1:], [tuple(flat[i * size:][:size]) for i in range(dims[0])])
    return seen


class Tally:
    """Chi-squares of what should be even, added up over many cases."""

    def __init__(self):
        self.sums = {}

    def add(self, name, outcomes, shares):
        """Of outcomes 0..n-1, whose probabilities are the shares."""
        count, total = collections.Counter(outcomes), len(outcomes)
        chi = sum((count[i] - total * share) ** 2 / (total * share) for i, share in enumerate(shares) if share)
        freedom = sum(share > 0 for share in shares) - 1
        before = self.sums.get(name, (0, 0, 0))
        self.sums[name] = (before[0] + chi, before[1] + freedom, before[2] + total)

    def wrong(self):
        """A chance in a million or so, where there is enough to judge; one as even as few cases show less."""
        return [f"{name}: chi-square {chi:.1f} of {freedom} degrees, {total} draws" for name, (chi, freedom, total) in self.sums.items()
                if chi > freedom + 5 * math.sqrt(2 * freedom) + 12]


class Feed:
    def __init__(self, seed):
        dice = self.dice = Dice(23 * 10**6 + seed)
        self.seed = seed
        stream = dice.chance(0.25)
        self.data = random_stream(dice) if stream else random_data(dice)
        self.other = random_data(dice, "e")
        self.shuffle, self.own_seed = dice.chance(0.6), dice.choice(["", f", seed = {dice.below(1000)}"])
        count = len(self.data.items())
        self.microbatches = dice.choice([1, 2, 3, 4, 4])
        self.size = self.microbatches * (1 + dice.below(max(1, 3 * count // (2 * self.microbatches))))
        if dice.chance(0.3):
            self.size = max(1, self.size - dice.below(self.microbatches))
        self.steps = min(14, max(3, -(-5 * count // (2 * self.size))))
        self.cut = 1 + dice.below(self.steps - 1)
        self.ranks = [1 + dice.below(self.microbatches) for _ in range(2)]
        self.extras = dice.subset(["read", "eval", "held", "other", "twice", "turns"]) if dice.chance(0.7) else []
        self.by_number = not stream and dice.chance(0.25)

    def options(self):
        return f"size = {self.size}" + ("" if self.data.stream else f", shuffle = {str(self.shuffle).lower()}{self.own_seed}")

    def loop(self):
        options, half = self.options(), " // 2" if "turns" in self.extras else ""
        lines = []
        if not self.data.stream:
            lines.append(f"show_all('same', 1, data_:batch(1, {{ {options} }}))")
            lines.append(f"show_all('seed', 1, data_:batch(1, {{ size = {self.size}, seed = 12345 }}))")
        if self.by_number:
            lines.append(f"for step = FIRST, LAST do\n  local batch = data_:batch(step, {{ {options} }})")
        else:
            lines.append(f"for step, batch in data_:batches {{ {options}, steps = LAST, from = run.steps{half} + 1 }} do")
        if "read" in self.extras:
            lines.append("  if step % 3 == 1 then show_all('read', step, batch) end")
        if "other" in self.extras:
            lines.append("  for at, else_ in other_:batches { size = 2, steps = step + 1, from = step } do show_all('other', at, else_) end")
        lines.append("  fed('step', step, run:step(batch))")
        if "eval" in self.extras:
            lines.append("  fed('eval', step, run:eval(batch))")
        if "held" in self.extras:
            lines.append("  if held then fed('held', step - 1, run:eval(held)) end\n  held = batch")
        if "turns" in self.extras:
            lines.append("  fed('turn', step, run:step(other_:batch(step, { size = MICROBATCHES })))")
        if "twice" in self.extras:
            lines.append("  show_all('again', step, batch)")
        return "\n".join(lines) + "\nend"

    def script(self, first, last, folder):
        text = SCRIPT
        given = {"DECLARED": f"local data_, held = {self.data.lua}\nlocal other_ = {self.other.lua}", "LOOP": self.loop(),
                 "MICROBATCHES": self.microbatches, "STRATEGY": "orrery.strategy.data {}", "FIRST": first, "LAST": last,
                 "STEPS": self.steps, "SEED": self.seed + 1, "FOLDER": folder}
        for word, value in given.items():
            text = text.replace(word, str(value))
        return text

    def write_files(self, folder):
        for name, content in {**self.data.files, **self.other.files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    # -- judging -------------------------------------------------------------------------------------------------------
    def wrong(self, whole, parts, tally):
        """Lines about what should not be, of the output of one process and of two that took turns."""
        held = f"held {self.cut} "
        lines = [[line for text in texts for line in text.splitlines() if not line.startswith(held)] for texts in ([whole], parts)]
        if sorted(set(lines[0])) != sorted(set(lines[1])):
            left, right = (sorted(set(a) - set(b)) for a, b in (lines, lines[::-1]))
            return [f"one process: {left[:3]}", f"two: {right[:3]}"]
        seen = read(whole)
        steps = [seen.get(("step", step)) for step in range(1, self.steps + 1)]
        if None in steps:
            return [f"there is no step {steps.index(None) + 1}"]
        found = [f"{word} {step}: {fields} where the step had {steps[step - 1]}" for (word, step), fields in seen.items()
                 if word in ("read", "eval", "held", "again", "same") and self.without_loss(fields) != self.without_loss(steps[step - 1])]
        fields = list(self.data.fields)
        for step, batch in enumerate(steps, 1):
            found += self.wrong_types(step, batch) + self.wrong_loss(step, batch)
        if found:
            return found
        rows = [[tuple(batch[f][2][i] for f in fields) for i in range(self.size)] for batch in steps]
        other = seen.get(("seed", 1))
        seeded = other and [tuple(other[f][2][i] for f in fields) for i in range(self.size)]
        return self.wrong_stream(rows) if self.data.stream else self.wrong_order(sum(rows, []), seeded, tally)

    @staticmethod
    def without_loss(batch):
        return {f: x for f, x in batch.items() if f != "loss"}

    def wrong_types(self, step, batch):
        want = {f: (kind, dims) for f, (kind, dims, *_) in self.data.fields.items()}
        got = {f: (kind, dims) for f, (kind, dims, _) in batch.items() if f != "loss"}
        fits = got.keys() == want.keys() and all(
            got[f][0] == kind and len(got[f][1]) == len(dims) and all(w in (None, g) for g, w in zip(got[f][1], dims))
            for f, (kind, dims) in want.items())
        short = [f for f, (_, _, rows) in batch.items() if f != "loss" and len(rows) != self.size]
        return [] if fits and not short else [f"step {step}: fields {got}, not {want}, of {self.size} rows"]

    def wrong_loss(self, step, batch):
        sums = [sum(x for f in self.data.fields for x in batch[f][2][i]) * 1.5e-6 for i in range(self.size)]
        size = sum(abs(x) for f in self.data.fields for row in batch[f][2] for x in row) * 1.5e-6 / self.size
        got, want = batch["loss"][2][0][0], sum(sums) / self.size
        return [] if abs(got - want) <= 1e-5 * size + 1e-12 else [f"step {step}: loss {got}, not {want}"]

    def wrong_stream(self, rows):
        fields = list(self.data.fields)
        if not self.data.shuffle:
            batches = self.data.batches(self.size)
            want = [[tuple(tuple(sample[f]) for f in fields) for sample in next(batches)] for _ in rows]
            return [f"step {i}: {got}, not {right}" for i, (got, right) in enumerate(zip(rows, want), 1) if got != right]
        place, count, drawn = fields.index("i"), len(self.data.samples), collections.Counter()
        waiting = self.data.shuffle + (len(self.data.lengths) * (self.size - 1))
        for n, row in enumerate(sum(rows, []), 1):
            number = row[place][0]
            drawn[number] += 1
            begun = n + waiting
            if drawn[number] > begun // count + (number <= begun % count):
                return [f"sample {number} comes {drawn[number]} times in {n}"]
            sample = self.data.samples[number - 1]
            if any(row[i][:len(sample[f])] != tuple(sample[f]) or set(row[i][len(sample[f]):]) - {self.data.fields[f][2]}
                   for i, f in enumerate(fields)):
                return [f"{row} is not {sample}"]
        return []

    def keys(self):
        """{row: (key of its sample, variant)}, or nothing if two samples may look alike."""
        fields, found = list(self.data.fields), {}
        for sample in self.data.samples:
            own = tuple(tuple(sample[f]) for f in fields)
            for variant, pixels in variants(self.data.changed, sample["x"]).items() if self.data.changed else [(None, None)]:
                row = tuple(tuple(pixels) if f == "x" and self.data.changed else tuple(sample[f]) for f in fields)
                known = found.setdefault(row, (own, variant))
                if known[0] != own:
                    return None
                if known[1] != variant:
                    found[row] = (own, "several")
        return found

    def wrong_order(self, rows, seeded, tally):
        fields, known = list(self.data.fields), self.keys()
        if known is None:
            return []
        strange = [row for row in rows + seeded if row not in known]
        if strange:
            return [f"{dict(zip(fields, strange[0]))} is no sample"]
        order, items = [known[row][0] for row in rows], [tuple(tuple(s[f]) for f in fields) for s in self.data.items()]
        if not self.shuffle and not (self.data.window and self.data.tokens is None):
            want = [items[i % len(items)] for i in range(len(order))]
            return [f"row {i}: {got}, not {right}" for i, (got, right) in enumerate(zip(order, want)) if got != right][:1]
        if self.shuffle and self.data.window:
            return self.count_windows(order, tally)
        return self.wrong_epochs(order, items, [known[row] for row in rows], [known[row][0] for row in seeded], tally) \
            if self.shuffle else []

    def count_windows(self, order, tally):
        all_ = collections.Counter(tuple(tuple(s[f]) for f in self.data.fields) for s in self.data.samples)
        places = {key: i for i, key in enumerate(all_)}
        tally.add("windows", [places[key] for key in order], [n / len(self.data.samples) for n in all_.values()])
        return []

    def wrong_epochs(self, order, items, rows, seeded, tally):
        count, all_ = len(items), collections.Counter(items)
        epochs = [order[i:i + count] for i in range(0, len(order), count)]
        for i, epoch in enumerate(epochs, 1):
            if collections.Counter(epoch) - all_:
                return [f"epoch {i}: {(collections.Counter(epoch) - all_).most_common(1)} too many"]
        if len(all_) < 9 or self.data.window:
            return []
        whole = [tuple(epoch) for epoch in epochs if len(epoch) == count] + [tuple(items)]
        if len(set(whole)) < len(whole):
            return ["two epochs have one order, or one has that of the samples"]
        if self.size > 8 and order[:self.size] == seeded:
            return ["another seed has the same order"]
        places = {key: i for i, key in enumerate(all_)}
        tally.add("first of an epoch", [places[epoch[0]] for epoch in epochs], [n / count for n in all_.values()])
        if self.data.changed:
            self.count_variants(rows, tally)
        return []

    def count_variants(self, rows, tally):
        (_, height, width), crop, pad, flip, *_ = self.data.changed
        drawn = [variant for _, variant in rows if variant != "several"]
        if len(drawn) < len(rows):
            return
        for name, place, among in (("top", 0, height + 2 * pad - crop + 1), ("left", 1, width + 2 * pad - crop + 1)):
            if crop:
                tally.add(name, [variant[place] + pad for variant in drawn], [1 / among] * among)
        if flip:
            tally.add("flip", [variant[2] for variant in drawn], [0.5, 0.5])
        before, same = {}, []
        for own, variant in rows:
            if own in before:
                same.append(int(before[own] == variant))
            before[own] = variant
        among = (1 + flip) * ((height + 2 * pad - crop + 1) * (width + 2 * pad - crop + 1) if crop else 1)
        if same and among > 1:
            tally.add("the same as before", same, [1 - 1 / among, 1 / among])


def judge(build, feed_of, seeds, folder, tally):
    """{seed: lines} of those that are wrong, and {seed: why} of those that are refused."""
    feeds, jobs = {seed: feed_of(seed) for seed in seeds}, {}
    for seed, feed in feeds.items():
        feed.write_files(folder / str(seed))
    outputs = {}
    for stage in range(3):
        jobs = {}
        for seed, feed in feeds.items():
            first, last, ranks = ((1, feed.steps, 1), (1, feed.cut, feed.ranks[0]), (feed.cut + 1, feed.steps, feed.ranks[1]))[stage]
            jobs.setdefault(ranks, []).append((seed, feed.script(first, last, f"{folder}/{seed}")))
        for ranks, scripts in jobs.items():
            for (seed, _), text in zip(scripts, all_outputs(build, [script for _, script in scripts], ranks)):
                outputs[seed, stage] = text
    wrong, refused = {}, {}
    for seed, feed in feeds.items():
        texts = [outputs[seed, stage] for stage in range(3)]
        whys = [refusal(text) or ("crash" in text and text) for text in texts]
        if any(whys):
            refused[seed] = next(filter(None, whys))
        elif lines := feed.wrong(texts[0], texts[1:], tally):
            wrong[seed] = lines
    return wrong, refused
