# SPDX-License-Identifier: Apache-2.0
"""Models of random_models.py and random_transformers.py that draw random numbers: dropout of all kinds, uniform and
normal numbers, drawn classes. PyTorch draws others, so that their figures are held against those of one process.
"""
from random_models import Model
from random_transformers import Transformer


class Drawing:
    """Before a Model: some of what it adds draws."""

    def cast(self, name):
        return name if self.dtype == "f32" else f"{name}:cast('{self.dtype}')"

    def add(self, lua, torch, shape, batched):
        if "nn.attention(" in lua and self.dice.chance(0.5):
            lua = lua.replace("{ heads", "{ dropout = 0.3, heads")
        super().add(lua, torch, shape, batched)

    def module(self, make, **parameters):
        if make.startswith(("nn.lstm", "nn.gru")) and self.dice.chance(0.7):
            make = make.replace("layers = 2", "layers = 2, dropout = 0.4")
        return super().module(make, **parameters)

    def made(self, lua, torch, *last):
        y = super().made(lua, torch, *last)
        if self.dice.chance(0.15):
            return super().made(f"orrery.dropout({y.name}, 0.2)", "", *last)
        return y

    def grow(self):
        if self.dice.chance(0.65):
            return super().grow()
        self.draw(self.dice.choice(self.values[-5:] if self.dice.chance(0.7) else self.values))

    def draw(self, x):
        n, rate = x.name, self.dice.choice([0.1, 0.3, 0.5])
        ways = [f"orrery.dropout({n}, {rate})", f"m.{self.module(f'nn.dropout({rate})')}({n})",
                f"{n} + {self.cast(f'orrery.uniform({n})')}", f"{n} * {self.cast(f'orrery.normal({n})')}",
                f"{n} + orrery.dropout({n}, {rate}) * orrery.dropout({n}, {rate})"]
        if not x.batched:
            dims = f"{{ {', '.join(map(str, x.shape))} }}"
            ways += [f"{n} * {self.cast(f'orrery.uniform({dims})')}", f"{n} + {self.cast(f'orrery.normal({dims})')}"]
        if len(x.shape) == 2:
            p = self.parameter((x.shape[-1], 3)).name
            self.add(f"{p}:gather(orrery.categorical({n}))", "", (x.shape[0], 3), x.batched)
            one = f"orrery.categorical({n}):one_hot({x.shape[-1]}, '{self.dtype}')"
            ways.append(f"{n} * {one}")
            gumbel = self.cast(f"(-(orrery.uniform({n}) + 1e-6):log() + 1e-6):log()")
            ways.append(f"({n} - {gumbel}):softmax()")
        if len(x.shape) == 3 and x.batched and x.shape[1] <= 6:
            ways.append(f"(orrery.scan(function(s, at, t) s = orrery.dropout((s or 0) + at, {rate}) return s, s end, nil, {n}))")
        self.add(self.dice.choice(ways), "", x.shape, x.batched)


class DrawingModel(Drawing, Model):
    pass


class DrawingTransformer(Drawing, Transformer):
    def finish(self, x):
        for _ in range(self.dice.below(3)):
            self.draw(x)
            x = self.values[-1]
        super().finish(x)


def drawing_model(seed):
    return (DrawingTransformer if seed % 2 else DrawingModel)(seed + 5 * 10**6)
