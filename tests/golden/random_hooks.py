# SPDX-License-Identifier: Apache-2.0
"""Random tensor code for the hooks of a strategy (exchange, synchronize): lines of Lua, and what they compute over
NumPy arrays whose first dim is the ranks of the axis.
"""
import math

import numpy as np

UNARY = {"tanh": np.tanh, "sin": np.sin, "abs": np.abs, "sign": np.sign}
BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply}
SUMS = {"sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max}


class Value:
    def __init__(self, name, shape, varying):
        self.name, self.shape, self.varying = name, tuple(shape), varying


class Hook:
    """`shape`: of the parameter and of the tensor `x` that the hook is given, which varies."""

    def __init__(self, dice, ranks, shape):
        self.dice, self.ranks, self.shape = dice, ranks, shape
        self.lines, self.steps, self.new_states = [], [], {}
        self.values = [Value("x", shape, True)]
        self.states = {f"s{k}": (dice.choice(["zeros", "parameter"]), dice.chance(0.5)) for k in range(dice.choice([0, 1, 1, 2]))}
        self.values += [Value(f"s.{name}", shape, varying) for name, (_, varying) in self.states.items()]
        for _ in range(2 + dice.below(6)):
            self.add()
        self.finish()

    def make(self, lua, compute, shape, varying):
        value = Value(f"v{len(self.steps)}", shape, varying)
        self.lines.append(f"local {value.name} = {lua}")
        self.steps.append((value.name, compute))
        self.values.append(value)
        return value

    def add(self):
        a = self.dice.choice(self.values[-4:] if self.dice.chance(0.6) else self.values)
        kind = self.dice.choice(["local", "layout", "collective", "collective"])
        if kind == "collective" and not a.varying:
            a = self.make(f"{a.name}:vary(axis)", lambda e, n=a.name: e[n], a.shape, True)
        getattr(self, kind)(a)

    def local(self, a):
        n, dice = a.name, self.dice
        kind = dice.choice(["unary", "number", "binary", "coordinate"])
        if kind == "unary":
            name = dice.choice(list(UNARY))
            return self.make(f"{n}:{name}()", lambda e: UNARY[name](e[n]), a.shape, a.varying)
        op = dice.choice(list(BINARY))
        if kind == "number":
            number = round(dice.normal(), 2)
            return self.make(f"{n} {op} ({number})", lambda e: BINARY[op](e[n], number), a.shape, a.varying)
        if kind == "binary":
            b = dice.choice([v for v in self.values if v.shape == a.shape])
            return self.make(f"{n} {op} {b.name}", lambda e: BINARY[op](e[n], e[b.name]), a.shape, a.varying or b.varying)
        coordinates = np.arange(self.ranks).reshape((-1,) + (1,) * len(a.shape))
        return self.make(f"{n} {op} orrery.coordinate(axis):cast('f64')", lambda e: BINARY[op](e[n], coordinates), a.shape, True)

    def layout(self, a):
        n, dice = a.name, self.dice
        d = dice.below(len(a.shape))
        before, size, after = a.shape[:d], a.shape[d], a.shape[d + 1:]
        kind = dice.choice(["pad", "sum", "slice", "flat", "cumsum"])
        if kind == "pad":
            wide = -(-size // self.ranks) * self.ranks
            width = [(0, 0)] * (d + 1) + [(0, wide - size)] + [(0, 0)] * len(after)
            return self.make(f"{n}:pad({d + 1}, {wide})", lambda e: np.pad(e[n], width), (*before, wide, *after), a.varying)
        if kind == "sum":
            return self.make(f"{n}:sum({d + 1}, {{ keep = true }})", lambda e: e[n].sum(axis=d + 1, keepdims=True), (*before, 1, *after), a.varying)
        if kind == "slice":
            first = 1 + dice.below(size)
            last = first + dice.below(size - first + 1)
            rows = (slice(None),) * (d + 1) + (slice(first - 1, last),)
            return self.make(f"{n}:slice({d + 1}, {first}, {last})", lambda e: e[n][rows], (*before, last - first + 1, *after), a.varying)
        if kind == "flat":
            return self.reshaped(a, (math.prod(a.shape),))
        return self.make(f"{n}:cumsum({d + 1})", lambda e: np.cumsum(e[n], axis=d + 1), a.shape, a.varying)

    def reshaped(self, a, shape):
        dims = ", ".join(map(str, shape))
        return self.make(f"{a.name}:reshape({dims})", lambda e, n=a.name: e[n].reshape(len(e[n]), *shape), shape, a.varying)

    def everywhere(self, lua, compute, shape):
        """What all ranks have alike."""
        return self.make(lua, lambda e: np.repeat(compute(e)[None], self.ranks, axis=0), shape, False)

    def collective(self, a):
        n, dice, ranks = a.name, self.dice, self.ranks
        d, c = dice.below(len(a.shape)), dice.below(len(a.shape))
        wider = tuple(size * ranks if i == c else size for i, size in enumerate(a.shape))
        kind = dice.choice(["all_reduce", "all_gather", "ppermute", "to", "pbroadcast", "reduce_scatter", "all_to_all"])
        if kind in ("reduce_scatter", "all_to_all") and a.shape[d] % ranks or math.prod(a.shape) > 500:
            kind = "all_reduce"
        if kind == "all_reduce":
            name = dice.choice(list(SUMS))
            return self.everywhere(f"{n}:all_reduce(axis, '{name}')", lambda e: SUMS[name](e[n], axis=0), a.shape)
        if kind == "all_gather":
            return self.everywhere(f"{n}:all_gather(axis, {{ dim = {c + 1} }})", lambda e: np.concatenate(list(e[n]), axis=c), wider)
        if kind == "pbroadcast":
            root = dice.below(ranks)
            return self.everywhere(f"{n}:pbroadcast(axis, {root})", lambda e: e[n][root], a.shape)
        if kind == "ppermute":
            hop = dice.choice([1, -1, 2, ranks + 1])
            return self.make(f"{n}:ppermute(axis, {{ hop = {hop} }})", lambda e: np.roll(e[n], hop, axis=0), a.shape, True)
        if kind == "to":
            to = sorted(range(ranks), key=lambda _: dice.below(1000))
            return self.make(f"{n}:ppermute(axis, {{ to = {{ {', '.join(map(str, to))} }} }})", lambda e: e[n][np.argsort(to)], a.shape, True)
        dealt = tuple(size // ranks if i == d else size for i, size in enumerate(a.shape))
        if kind == "reduce_scatter":
            return self.make(f"{n}:reduce_scatter(axis, {{ dim = {d + 1} }})", lambda e: np.stack(np.split(e[n].sum(axis=0), ranks, axis=d)), dealt, True)
        dealt = tuple(size * ranks if i == c else size for i, size in enumerate(dealt))

        def exchanged(e):
            parts = [np.split(mine, ranks, axis=d) for mine in e[n]]
            return np.stack([np.concatenate([part[to] for part in parts], axis=c) for to in range(ranks)])
        return self.make(f"{n}:all_to_all(axis, {{ split = {d + 1}, concat = {c + 1} }})", exchanged, dealt, True)

    def fitted(self, a, varying):
        """A value made of `a` with the parameter's shape, that may vary only if `varying`."""
        n = math.prod(self.shape)
        if a.shape != self.shape:
            a = self.reshaped(a, (math.prod(a.shape),))
            if a.shape[0] < n:
                a = self.make(f"{a.name}:pad(1, {n})", lambda e, name=a.name, more=n - a.shape[0]: np.pad(e[name], ((0, 0), (0, more))), (n,), a.varying)
            else:
                a = self.make(f"{a.name}:slice(1, 1, {n})", lambda e, name=a.name: e[name][:, :n], (n,), a.varying)
            a = self.reshaped(a, self.shape)
        if a.varying and not varying:
            a = self.everywhere(f"{a.name}:all_reduce(axis, 'mean')", lambda e, name=a.name: e[name].mean(axis=0), a.shape)
        return a

    def finish(self):
        """States and the result stay bounded."""
        for name, (_, varying) in self.states.items():
            if self.dice.chance(0.8):
                a = self.fitted(self.dice.choice(self.values), varying)
                self.new_states[name] = self.make(f"{a.name}:tanh()", lambda e, n=a.name: np.tanh(e[n]), a.shape, a.varying).name
        a, x = self.fitted(self.dice.choice(self.values[-3:]), False), self.fitted(self.values[0], False)
        self.result = self.make(f"{a.name}:tanh() * 0.5 + {x.name}", lambda e: np.tanh(e[a.name]) * 0.5 + e[x.name], self.shape, False).name
        self.lines += [f"s.{name} = {value}" for name, value in self.new_states.items()] + [f"return {self.result}"]

    def begin(self, weight):
        """The states of a parameter, as they are at first."""
        return {name: np.zeros((self.ranks, *self.shape)) if init == "zeros" else np.stack([weight] * self.ranks)
                for name, (init, _) in self.states.items()}

    def run(self, x, states):
        """The result and the new states."""
        env = {"x": x} | {f"s.{name}": value for name, value in states.items()}
        for name, compute in self.steps:
            env[name] = compute(env)
        return env[self.result], states | {name: env[value] for name, value in self.new_states.items()}
