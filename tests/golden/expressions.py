# SPDX-License-Identifier: Apache-2.0
"""Random losses, each as a script of Orrery's and as lines of PyTorch's: tensors of few elements with dims of 1 and
without dims, parameters of all shapes, batches of one sample, and ops on what earlier ones made.

`Loss(seed)` is the same on every machine. `script()` trains it for three steps and prints for each the loss and the
norm of the gradients, then the parameters; `expressions_record.py` computes what it should print.
"""
import math

STEPS, RATE = 3, 0.1


class Dice:
    """Numbers that depend on nothing but the seed (xorshift64*, Vigna 2016)."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 1) % 2**64

    def below(self, n):
        x = self.state
        x ^= x >> 12
        x ^= x << 25 & 2**64 - 1
        x ^= x >> 27
        self.state = x
        return (x * 0x2545F4914F6CDD1D % 2**64 >> 33) % n

    def choice(self, items):
        return items[self.below(len(items))]

    def chance(self, share):
        return self.below(1000) < 1000 * share

    def subset(self, items):
        """Some of the items, at least one, in their order."""
        return [x for x in items if self.chance(0.5)] or [self.choice(items)]

    def normal(self):
        return sum(self.below(2**20) for _ in range(12)) / 2**20 - 6


def literal(shape, numbers):
    """Nested lists of Lua's."""
    if not shape:
        return next(numbers)
    return "{ " + ", ".join(str(literal(shape[1:], numbers)) for _ in range(shape[0])) + " }"


class Value:
    def __init__(self, name, shape, batched):
        self.name, self.shape, self.batched = name, tuple(shape), batched
        self.own = list(range(batched, len(shape)))  # dims that are not the batch


class Loss:
    dtype = "f32"

    def __init__(self, seed, least_microbatches=1):
        self.dice = Dice(seed)
        self.batch = self.dice.choice([n for n in (1, 2, 3, 4, 6, 8) if n >= least_microbatches])
        self.values, self.lua, self.torch = [], [], []
        self.parameters, self.fields, self.indices = {}, {}, {}
        for _ in range(1 + self.dice.below(2)):
            self.input(self.fields, "x", (self.batch, *self.dice.choice([(), (3,), (2, 3), (1,), (1, 4), (5,), (2, 1, 3)])), 1)
        for _ in range(1 + self.dice.below(3)):
            self.parameter(self.dice.choice([(), (1,), (3,), (2, 3), (3, 1), (4,), (5, 3), (2, 1, 3), (1, 1)]))
        for _ in range(3 + self.dice.below(12)):
            self.grow()
        self.microbatches = self.dice.choice([m for m in (1, 2, 3, 4) if self.batch % m == 0 and m >= least_microbatches])
        self.clip = self.dice.choice([0, 0, 0.5])
        self.close()

    # -- inputs ----------------------------------------------------------------------------------
    def input(self, kind, letter, shape, batched):
        name = f"{letter}{len(kind)}"
        kind[name] = (shape, [round(self.dice.normal(), 4) for _ in range(math.prod(shape))])
        self.values.append(Value(name, shape, batched))
        return self.values[-1]

    def parameter(self, shape):
        return self.input(self.parameters, "p", shape, 0)

    def index(self, shape, below, different=False):
        """0-based positions, as a field of the batch where the first dim is its."""
        name, count = f"i{len(self.indices)}", math.prod(shape)
        all_of = sorted(range(below), key=lambda _: self.dice.below(1000))
        self.indices[name] = (shape, all_of[:count] if different else [self.dice.below(below) for _ in range(count)])
        return name

    # -- ops -------------------------------------------------------------------------------------
    def add(self, lua, torch, shape, batched):
        name = f"v{len(self.lua)}"
        self.lua.append(f"local {name} = {lua}")
        self.torch.append(f"{name} = {torch}")
        self.values.append(Value(name, shape, batched))

    def dim(self, d, rank):
        """A dim as Lua counts it: from 1, or from the end."""
        return d + 1 if self.dice.chance(0.6) else d - rank

    def grow(self):
        x = self.dice.choice(self.values[-6:] if self.dice.chance(0.7) else self.values)
        if math.prod(x.shape) > 600:
            return
        ops = [self.unary, self.unary, self.binary, self.binary, self.binary, self.number, self.choose, self.gather]
        if x.own:
            ops += [self.reduce, self.reduce, self.slice, self.reshape, self.pad, self.cumsum, self.sort, self.softmax,
                    self.concat, self.split, self.norm, self.einsum]
        if len(x.own) >= 2:
            ops += [self.permute, self.product, self.square, self.windows]
        if not x.batched:
            ops += [self.reduce_all] + [self.take, self.put, self.scatter, self.broadcast] * bool(x.shape)
        self.dice.choice(ops)(x)

    def unary(self, x):
        n, positive = x.name, f"({x.name}*{x.name}+0.3)"
        both = ["tanh", "sigmoid", "sin", "cos", "relu", "erf", "abs", "sign", "round", "floor"]
        lua, torch = self.dice.choice([(f"{n}:{f}()", f"{n}.{f}()") for f in both] + [
            (f"{positive}:{f}()", f"{positive}.{f}()") for f in ("log", "sqrt", "rsqrt")] + [
            (f"{n}:silu()", f"F.silu({n})"), (f"{n}:gelu()", f"F.gelu({n}, approximate='tanh')"),
            (f"{n}:tanh():exp()", f"{n}.tanh().exp()"), (f"{positive}:recip()", f"{positive}.reciprocal()"),
            (f"-{n}", f"-{n}"), (f"{n}:pow(2)", f"{n}.pow(2)"), (f"{positive}:pow(1.7)", f"{positive}.pow(1.7)"),
            (f"{n}:clamp(-0.5, 0.7)", f"{n}.clamp(-0.5, 0.7)"), (f"{n}:stop_gradient() * {n}", f"{n}.detach() * {n}"),
            (f"({n}:cast('f64') * 1.25):cast('{self.dtype}')", f"{n} * 1.25")])
        self.add(lua, torch, x.shape, x.batched)

    def fitting(self, x):
        """Values that broadcast with x, and the shape of both; of two samples none meets the other."""
        for y in self.values:
            pairs = list(zip(reversed(x.shape), reversed(y.shape)))
            if any(a != b and 1 not in (a, b) for a, b in pairs):
                continue
            longer = max(x.shape, y.shape, key=len)
            shape = longer[:len(longer) - len(pairs)] + tuple(max(a, b) for a, b in reversed(pairs))
            batched = x.batched or y.batched
            if batched and any(len(v.shape) == len(shape) and not v.batched and v.shape[0] != 1 for v in (x, y)):
                continue
            if any(v.batched and len(v.shape) != len(shape) for v in (x, y)) or math.prod(shape) > 600:
                continue
            yield y, shape, batched

    def binary(self, x):
        y, shape, batched = self.dice.choice(list(self.fitting(x)))
        a, b = x.name, y.name
        lua, torch = self.dice.choice([
            (f"{a} + {b}",) * 2, (f"{a} - {b}",) * 2, (f"{a} * {b}",) * 2,
            (f"{a}:maximum({b})", f"torch.where({a} >= {b}, {a}, {b})"),
            (f"{a}:minimum({b})", f"torch.where({a} <= {b}, {a}, {b})"),
            (f"{a} / ({b}:abs() + 0.5)", f"{a} / ({b}.abs() + 0.5)"),
            (f"{a}:gt({b}):select({a} * 2, {b})", f"torch.where({a} > {b}, {a} * 2, {b})")])
        self.add(lua, torch, shape, batched)

    def number(self, x):
        lua = self.dice.choice([f"{x.name} * 0.5", f"2 - {x.name}", f"{x.name} + -1.5", f"{x.name} * 0"])
        self.add(lua, lua, x.shape, x.batched)

    def choose(self, x):
        n = x.name
        self.add(f"{n}:gt(0.1):logical_and({n}:lt(0.9)):logical_not():select({n}, 0.25)",
                 f"torch.where(~(({n} > 0.1) & ({n} < 0.9)), {n}, 0.25)", x.shape, x.batched)

    def reduce(self, x):
        f = self.dice.choice(["sum", "mean", "max", "min", "sumsq", "var", "logsumexp"])
        some, keep = self.dice.subset(x.own), self.dice.chance(0.5)
        size = math.prod(x.shape[d] for d in some)
        shape = [1 if d in some else n for d, n in enumerate(x.shape) if keep or d not in some]
        dims = ", ".join(str(self.dim(d, len(x.shape))) for d in some)
        options = f", {{ keep = {str(keep).lower()}{', correction = 0' if f == 'var' and size == 1 else ''} }}"
        how = f"dim={tuple(some)}, keepdim={keep}"
        torch = {"sumsq": f"({x.name} ** 2).sum({how})", "max": f"{x.name}.amax({how})", "min": f"{x.name}.amin({how})",
                 "var": f"{x.name}.var({how}, correction={int(size > 1)})", "logsumexp": f"torch.logsumexp({x.name}, {how})"}
        self.add(f"{x.name}:{f}({{ {dims} }}{options})", torch.get(f, f"{x.name}.{f}({how})"), shape, x.batched)

    def reduce_all(self, x):
        f = self.dice.choice(["sum", "mean", "max", "min", "sumsq", "logsumexp"])
        torch = {"sumsq": f"({x.name} ** 2).sum()", "max": f"{x.name}.amax()", "min": f"{x.name}.amin()",
                 "logsumexp": f"torch.logsumexp({x.name}.reshape(-1), 0)"}
        self.add(f"{x.name}:{f}()", torch.get(f, f"{x.name}.{f}()"), (), 0)

    def changed(self, x, dim, size):
        return [size if d == dim else n for d, n in enumerate(x.shape)]

    def slice(self, x):
        d = self.dice.choice(x.own)
        first, step = 1 + self.dice.below(x.shape[d]), self.dice.choice([1, 1, 2, 3])
        last = first + self.dice.below(x.shape[d] - first + 1)
        taken, ends = list(range(first - 1, last, step)), f"{first}, {last}, {step}"
        if self.dice.chance(0.3):
            taken, ends = list(range(last - 1, first - 2, -step)), f"{last}, {first}, {-step}"
        self.add(f"{x.name}:slice({self.dim(d, len(x.shape))}, {ends})",
                 f"{x.name}.index_select({d}, torch.tensor({taken}))", self.changed(x, d, len(taken)), x.batched)

    def reshape(self, x):
        size = math.prod(x.shape[x.batched:])
        rows = self.dice.choice([n for n in range(1, size + 1) if size % n == 0])
        shape = [*x.shape[:x.batched], *self.dice.choice([(rows, size // rows), (1, size, 1), (size,)])]
        given = ["-1"] * x.batched + [str(n) for n in shape[x.batched:]]
        self.add(f"{x.name}:reshape({', '.join(given)})", f"{x.name}.reshape({', '.join(given)})", shape, x.batched)

    def pad(self, x):
        d, before, behind, value = self.dice.choice(x.own), self.dice.below(3), self.dice.below(3), self.dice.choice([0, 1.5])
        size, at = x.shape[d] + before + behind, 2 * (len(x.shape) - 1 - d)
        pads = [0] * at + [before, behind]
        self.add(f"{x.name}:pad({self.dim(d, len(x.shape))}, {size}, {{ before = {before}, value = {value} }})",
                 f"F.pad({x.name}, {pads}, value={value})", self.changed(x, d, size), x.batched)

    def cumsum(self, x):
        d = self.dice.choice(x.own)
        self.add(f"{x.name}:cumsum({self.dim(d, len(x.shape))})", f"{x.name}.cumsum({d})", x.shape, x.batched)

    def sort(self, x):
        d, k = self.dice.choice(x.own), 1 + self.dice.below(x.shape[-1])
        if self.dice.chance(0.5):
            return self.add(f"({x.name}:topk({k}))", f"{x.name}.topk({k}).values", (*x.shape[:-1], k), x.batched)
        down = self.dice.chance(0.5)
        self.add(f"({x.name}:sort({self.dim(d, len(x.shape))}, {{ descending = {str(down).lower()} }}))",
                 f"{x.name}.sort(dim={d}, stable=True, descending={down}).values", x.shape, x.batched)

    def softmax(self, x):
        self.add(f"{x.name}:softmax()", f"{x.name}.softmax(-1)", x.shape, x.batched)

    def concat(self, x):
        d = self.dice.choice(x.own)
        like = [y for y in self.values if y.batched == x.batched and len(y.shape) == len(x.shape)
                and all(a == b for i, (a, b) in enumerate(zip(x.shape, y.shape)) if i != d)]
        y = self.dice.choice(like)
        self.add(f"orrery.concat({{ {x.name}, {y.name} }}, {self.dim(d, len(x.shape))})",
                 f"torch.cat([{x.name}, {y.name}], {d})", self.changed(x, d, x.shape[d] + y.shape[d]), x.batched)

    def split(self, x):
        d = self.dice.choice(x.own)
        if x.shape[d] < 2:
            return
        sizes, part = [first := 1 + self.dice.below(x.shape[d] - 1), x.shape[d] - first], self.dice.below(2)
        self.add(f"(select({part + 1}, {x.name}:split({self.dim(d, len(x.shape))}, {{ {sizes[0]}, {sizes[1]} }})))",
                 f"{x.name}.split({sizes}, {d})[{part}]", self.changed(x, d, sizes[part]), x.batched)

    def norm(self, x):
        if x.shape[-1] < 2:
            return
        w = self.parameter(x.shape[-1:]).name
        if self.dice.chance(0.5):
            return self.add(f"orrery.rmsnorm({x.name}, {w})", f"F.rms_norm({x.name}, {w}.shape, {w}, 1e-5)", x.shape, x.batched)
        b = self.parameter(x.shape[-1:]).name
        self.add(f"orrery.layernorm({x.name}, {w}, {b})", f"F.layer_norm({x.name}, {w}.shape, {w}, {b})", x.shape, x.batched)

    def einsum(self, x):
        letters, w = "zabcd"[:len(x.shape)], self.parameter((x.shape[-1], 1 + self.dice.below(3)))
        kept = letters[:-1] if self.dice.chance(0.6) else letters
        if not kept or len(letters) != len(x.shape):
            return
        equation = f"{letters},{letters[-1]}q->{kept}q"
        self.add(f"orrery.einsum('{equation}', {x.name}, {w.name})", f"torch.einsum('{equation}', {x.name}, {w.name})",
                 (*x.shape[:len(kept)], w.shape[1]), x.batched)

    def permute(self, x):
        order = list(range(x.batched)) + sorted(x.own, key=lambda _: self.dice.below(1000))
        self.add(f"{x.name}:permute({', '.join(str(d + 1) for d in order)})", f"{x.name}.permute({order})",
                 [x.shape[d] for d in order], x.batched)

    def product(self, x):
        columns = self.dice.choice([1, 2, 3, 5])
        shape = (*x.shape[:-1], columns)
        if self.dice.chance(0.5):
            w = self.parameter((columns, x.shape[-1])).name
            return self.add(f"{x.name}:matmul({w}, {{ transpose_b = true }})", f"{x.name} @ {w}.T", shape, x.batched)
        w = self.parameter((x.shape[-1], columns)).name
        self.add(f"{x.name}:matmul({w})", f"{x.name} @ {w}", shape, x.batched)

    def square(self, x):
        rows, columns = x.shape[-2:]
        if self.dice.chance(0.5):
            return self.add(f"{x.name}:matmul({x.name}, {{ transpose_b = true }})", f"{x.name} @ {x.name}.mT",
                            (*x.shape[:-2], rows, rows), x.batched)
        self.add(f"{x.name}:matmul({x.name}, {{ transpose_a = true }})", f"{x.name}.mT @ {x.name}",
                 (*x.shape[:-2], columns, columns), x.batched)

    def windows(self, x):
        d, size, stride, dilation = len(x.shape) - 2, 1 + self.dice.below(3), 1 + self.dice.below(2), 1 + self.dice.below(2)
        reach = (size - 1) * dilation + 1
        if reach > x.shape[d]:
            return
        count = (x.shape[d] - reach) // stride + 1
        self.add(f"{x.name}:windows({size}, {{ stride = {stride}, dilation = {dilation} }})",
                 f"torch.stack([{x.name}.narrow({d}, i * {stride}, {reach})[..., ::{dilation}, :] for i in range({count})], {d})",
                 (*x.shape[:-2], count, size, x.shape[-1]), x.batched)

    def gather(self, _):
        table, batched = self.parameter((self.dice.choice([1, 4, 7]), self.dice.choice([1, 3]))), self.dice.below(2)
        shape = (self.batch,) * batched + self.dice.choice([(2,), (2, 2)] + [()] * batched)
        i = self.index(shape, table.shape[0])
        self.add(f"{table.name}:gather({self.read(i, batched)})", f"{table.name}[{i}]", (*shape, table.shape[1]), batched)

    def take(self, x):
        i = self.index((self.dice.choice([1, 3, 6]),), math.prod(x.shape))
        self.add(f"{x.name}:take({self.read(i)})", f"{x.name}.reshape(-1)[{i}]", self.indices[i][0], 0)

    def put(self, x):
        size = math.prod(x.shape)
        rows = self.parameter((1 + self.dice.below(min(3, size)),))
        i = self.index(rows.shape, size, different=True)
        self.add(f"{x.name}:put({self.read(i)}, {rows.name})",
                 f"{x.name}.reshape(-1).index_put(({i},), {rows.name}).reshape({list(x.shape)})", x.shape, 0)

    def scatter(self, x):
        rows = self.parameter((self.dice.choice([1, 2, 4]), *x.shape[1:]))
        i = self.index(rows.shape[:1], x.shape[0])
        self.add(f"{x.name}:scatter_add({self.read(i)}, {rows.name})", f"{x.name}.index_add(0, {i}, {rows.name})", x.shape, 0)

    def broadcast(self, x):
        shape = [2] + [3 if n == 1 else n for n in x.shape]
        self.add(f"{x.name}:broadcast({', '.join(map(str, shape))})", f"{x.name}.expand({shape})", shape, 0)

    def read(self, index, batched=False):
        """How the script names positions: a field of the batch, or a buffer."""
        return f"batch.{index}" if batched else f"kept.{index} + 0"

    # -- the loss --------------------------------------------------------------------------------
    def close(self):
        """The mean over samples of a sum of what was made last, of all parameters and of a field."""
        ends = self.values[-3:] + [v for v in self.values if v.name in self.parameters or v.name == "x0"]
        terms = []
        for v in {v.name: v for v in ends}.values():
            inner = [d for d in range(v.batched, len(v.shape))]
            lua = f"{v.name}:tanh()" + (f":sum({{ {', '.join(str(d + 1) for d in inner)} }})" if inner else "")
            self.lua.append(f"local s_{v.name} = {lua}")
            self.torch.append(f"s_{v.name} = {v.name}.tanh()" + (f".sum({tuple(inner)})" if inner else ""))
            terms.append(f"s_{v.name}")
        total = " + ".join(terms) + f" + {terms[0]} * {terms[1]}"
        self.lua.append(f"return ({total}):mean()")
        self.torch.append(f"loss = ({total}).mean()")

    def script(self, strategy=""):
        """`strategy`: Lua of compile's option, if any."""
        fields = self.fields | {name: v for name, v in self.indices.items() if any(f"batch.{name})" in l for l in self.lua)}
        kept = {name: v for name, v in self.indices.items() if name not in fields}
        lines = ["local orrery = require 'orrery'", "local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy",
                 "local kept, model = {}, nn.module('Model', function(m)"]
        lines += [f"  m.{name} = nn.parameter {{ {', '.join(map(str, shape))} }}" for name, (shape, _) in self.parameters.items()]
        lines += ["  return function() end", "end)()"]
        for name, (shape, numbers) in self.parameters.items():
            lines.append(f"model.{name}:write(orrery.tensor({literal(shape, iter(numbers))}, 'f32'))")
        for name, (shape, numbers) in kept.items():
            lines.append(f"kept.{name} = orrery.buffer({{ {', '.join(map(str, shape))} }}, {{ dtype = 'i32' }})")
            lines.append(f"kept.{name}:write(orrery.tensor({literal(shape, iter(numbers))}, 'i32'))")
        lines.append("local run = orrery.compile(function(batch)")
        lines += [f"  local {name} = model.{name}" for name in self.parameters]
        lines += [f"  local {name} = batch.{name}" for name in self.fields]
        lines += ["  " + line for line in self.lua]
        clip = f"clip = {self.clip}, " if self.clip else ""
        lines.append(f"end, {{ params = model, microbatches = {self.microbatches}, {clip}{strategy}"
                     f"optimizer = optim.sgd {{ lr = {RATE} }} }})")
        given = [f"{name} = orrery.tensor({literal(shape, iter(numbers))}, '{'f32' if name in self.fields else 'i32'}')"
                 for name, (shape, numbers) in fields.items()]
        lines.append(f"local batch = {{ {', '.join(given)} }}")
        lines.append(f"for _ = 1, {STEPS} do")
        lines += ["  local result = run:step(batch)",
                  "  orrery.log('%.9g %.9g', result:mean(), result:get 'grad_norm')", "end",
                  "for _, p in ipairs(orrery.parameters(model)) do",
                  "  local sum = orrery.func(function(x) return x:reshape(-1):sum() end)(p:read())",
                  "  orrery.log('%s %.9g', p.name, sum:item())", "end"]
        return "\n".join(lines) + "\n"
