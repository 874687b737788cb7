# SPDX-License-Identifier: Apache-2.0
"""Random models of sequences, whose layers strategies can cut: of random_models.py, with blocks of attention, of two
linear layers, of experts and of norms between an embedding and a cross-entropy.
"""
from expressions import Dice
from random_models import STEPS, Model
from random_optimizers import Optimizer


class Transformer(Model):
    sequences = True

    def __init__(self, seed, dtype=None):
        dice = self.dice = Dice(2 * 10**6 + seed)
        self.start(dtype)
        self.batch, self.time, self.width = dice.choice([2, 3, 4, 6, 8]), dice.choice([4, 4, 8, 12]), dice.choice([4, 8])
        self.vocabulary, self.cross_entropy = dice.choice([5, 8, 11]), None
        x = self.begin()
        for _ in range(1 + dice.below(4)):
            x = dice.choice([self.attend, self.attend, self.two_layers, self.two_layers, self.experts, self.normalize, self.gated,
                             self.mix])(x)
        self.finish(x)
        self.watch()
        self.microbatches = dice.choice([m for m in (1, 2, 3, 4, 6, 8) if m <= self.batch])
        fewer = [self.batch, self.batch, max(self.microbatches, 1 + dice.below(self.batch))]
        self.sizes = [self.batch] + [dice.choice(fewer) for _ in range(STEPS - 1)]
        self.optimizer = Optimizer(dice, list(self.parameters), self.path)
        self.clip = dice.choice([0, 0, 0.5])

    def made(self, lua, torch, *last):
        self.add(lua, torch, (self.batch, self.time, *(last or (self.width,))), 1)
        return self.values[-1]

    def full(self, x, outputs, bias=True):
        inputs = x.shape[-1]
        l = self.module(f"nn.linear({inputs}, {outputs}, {self.options(bias=bias)})", weight=(outputs, inputs),
                        **{"bias": (outputs,)} if bias else {})
        return self.made(f"m.{l}({x.name})", f"F.linear({x.name}, {l}_weight{f', {l}_bias' * bias})", outputs)

    def normed(self, x):
        if self.dice.chance(0.3):
            return x
        if self.dice.chance(0.5):
            l = self.module(f"nn.rmsnorm({self.width}, {self.options()})", weight=(self.width,))
            return self.made(f"m.{l}({x.name})", f"F.rms_norm({x.name}, {l}_weight.shape, {l}_weight, 1e-5)")
        l = self.module(f"nn.layernorm({self.width}, {self.options()})", weight=(self.width,), bias=(self.width,))
        return self.made(f"m.{l}({x.name})", f"F.layer_norm({x.name}, {l}_weight.shape, {l}_weight, {l}_bias)")

    def residual(self, x, y):
        return self.made(f"{x.name} + {y.name}", f"{x.name} + {y.name}") if self.dice.chance(0.7) else y

    # -- parts -----------------------------------------------------------------------------------
    def begin(self):
        i = self.index((self.batch, self.time), self.vocabulary)
        self.table = l = self.module(f"nn.embedding({self.vocabulary}, {self.width}, {self.options()})",
                                     weight=(self.vocabulary, self.width))
        x = self.made(f"m.{l}(batch.{i})", f"F.embedding({i}, {l}_weight)")
        if self.dice.chance(0.5):
            l = self.module(f"nn.embedding({self.time + 2}, {self.width}, {self.options()})", weight=(self.time + 2, self.width))
            x = self.made(f"{x.name} + m.{l}(orrery.iota({self.time}))", f"{x.name} + {l}_weight[:{self.time}]")
        if self.dice.chance(0.2):
            y = self.input(self.fields, "x", (self.batch, self.time, self.width), 1)
            x = self.made(f"{x.name} + {y.name}", f"{x.name} + {y.name}")
        return x

    def attend(self, x):
        dice, y = self.dice, self.normed(x)
        heads, d = dice.choice([2, 4]), dice.choice([2, 4])
        kv = dice.choice([h for h in (1, 2, 4) if heads % h == 0])
        bias, lua, torch = dice.chance(0.5), [f"heads = {heads}, kv_heads = {kv}"], [f"heads={heads}, kv_heads={kv}"]
        if dice.chance(0.4):
            sizes = [heads * d, kv * d, kv * d]
            l = self.module(f"nn.linear({self.width}, {{ {', '.join(map(str, sizes))} }}, {self.options(bias=bias)})",
                            weight=(sum(sizes), self.width), **{"bias": (sum(sizes),)} if bias else {})
            q, k, v = (f"{name}_{l}" for name in "qkv")
            self.lua.append(f"local {q}, {k}, {v} = m.{l}({y.name})")
            self.torch.append(f"{q}, {k}, {v} = F.linear({y.name}, {l}_weight{f', {l}_bias' * bias}).split({sizes}, -1)")
        else:
            q, k, v = (self.full(y, n * d, bias).name for n in (heads, kv, kv))
        if dice.chance(0.3):
            inter = str(dice.chance(0.5))
            for name, h in ((q, heads), (k, kv)):
                self.lua.append(f"{name} = nn.rotary({name}, {{ heads = {h}, interleaved = {inter.lower()} }})")
                self.torch.append(f"{name} = T.rotary({name}, {h}, {inter})")
        if dice.chance(0.6):
            lua.append("causal = true"), torch.append("causal=True")
        if dice.chance(0.2):
            window = 1 + dice.below(4)
            lua.append(f"window = {window}"), torch.append(f"window={window}")
        if dice.chance(0.2):
            m = self.input(self.fields, "x", (self.batch, self.time), 1).name
            shape = f":reshape(-1, 1, 1, {self.time})"
            lua.append(f"mask = {m}:gt(-0.7){shape}"), torch.append(f"mask=({m} > -0.7).reshape(-1, 1, 1, {self.time})")
        if dice.chance(0.2):
            b = self.parameter(dice.choice([(1, heads, self.time, self.time), (heads, self.time, self.time), (self.time, self.time)])).name
            lua.append(f"bias = {b}"), torch.append(f"bias={b}")
        o = self.made(f"nn.attention({q}, {k}, {v}, {{ {', '.join(lua)} }})", f"T.attention({q}, {k}, {v}, {', '.join(torch)})", heads * d)
        return self.residual(x, self.full(o, self.width, dice.chance(0.5)))

    def two_layers(self, x):
        act = self.dice.choice(["gelu", "relu", "tanh", "silu"])
        h = self.full(self.normed(x), self.dice.choice([4, 8, 12]), self.dice.chance(0.7))
        torch = {"gelu": f"F.gelu({h.name}, approximate='tanh')", "silu": f"F.silu({h.name})"}.get(act, f"{h.name}.{act}()")
        h = self.made(f"{h.name}:{act}()", torch, h.shape[-1])
        return self.residual(x, self.full(h, self.width, self.dice.chance(0.7)))

    def gated(self, x):
        y, inner = self.normed(x), self.dice.choice([4, 8])
        a, b = self.full(y, inner, False), self.full(y, inner, False)
        return self.residual(x, self.full(self.made(f"{a.name}:silu() * {b.name}", f"F.silu({a.name}) * {b.name}", inner), self.width, False))

    def experts(self, x):
        if self.dtype != "f32":
            return self.two_layers(x)
        self.switch(self.normed(x))
        return self.residual(x, self.values[-1])

    def normalize(self, x):
        return self.normed(x)

    def mix(self, x):
        """Ops between places or with parameters of no layer."""
        n, kind = x.name, self.dice.below(6)
        if kind == 0:
            p = self.parameter((self.width,)).name
            return self.made(f"{n} * {p}", f"{n} * {p}")
        if kind == 1:
            return self.made(f"{n}:cumsum(2) * 0.25", f"{n}.cumsum(1) * 0.25")
        if kind == 2:
            return self.made(f"{n} + {n}:mean(2, {{ keep = true }})", f"{n} + {n}.mean(1, keepdim=True)")
        if kind == 3:
            p = self.parameter((self.time, self.width)).name
            return self.made(f"{n} + {p}", f"{n} + {p}")
        if kind == 4:
            return self.made(f"orrery.concat({{ {n}:slice(2, 1, 1), {n}:slice(2, 1, -2) }}, 2)",
                             f"torch.cat([{n}[:, :1], {n}[:, :-1]], 1)")
        return self.made(f"{n}:softmax() * {n}:max(-1, {{ keep = true }})", f"{n}.softmax(-1) * {n}.amax(-1, keepdim=True)")

    def finish(self, x):
        x = self.normed(x)
        if self.dice.chance(0.4):
            logits = self.made(f"{x.name}:matmul({self.table}_weight, {{ transpose_b = true }})", f"{x.name} @ {self.table}_weight.T",
                               self.vocabulary) if self.dice.chance(0.5) else None
            if not logits:
                l = self.module(f"nn.linear({self.width}, {self.vocabulary}, {{ bias = false, tie = m.{self.table}.weight }})")
                logits = self.made(f"m.{l}({x.name})", f"F.linear({x.name}, {self.table}_weight)", self.vocabulary)
        else:
            logits = self.full(x, self.vocabulary, self.dice.chance(0.5))
        kind = self.dice.below(6)
        if kind in (0, 5):  # any ops behind the layers
            for _ in range(self.dice.below(6)):
                self.grow()
            return self.close()
        i = self.index((self.batch, self.time), self.vocabulary)
        shape, labels = self.indices[i]
        options, weights = [], None
        plain = [l for l in self.losses if "aux" in l[0]]
        if kind == 1 and not plain:
            self.indices[i] = (shape, [-1 if n % self.time and self.dice.chance(0.3) else y for n, y in enumerate(labels)])
            options.append("ignore = -1")
        if kind == 2 and not plain:
            weights = self.input(self.fields, "x", (self.batch, self.time), 1).name
            options.append(f"weights = {weights}:abs() + 0.1")
        self.lua.append(f"return nn.cross_entropy({logits.name}, batch.{i}, {{ {', '.join(options)} }})" + self.more(0))
        self.torch.append(f"loss = T.cross_entropy({logits.name}, {i}, {weights and f'{weights}.abs() + 0.1'})" + self.more(1))

    def more(self, which):
        return "".join(f" + {term[which]}" for term in self.losses)
