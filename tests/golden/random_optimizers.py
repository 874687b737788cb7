# SPDX-License-Identifier: Apache-2.0
"""A random optimizer for a random model: as Lua, and as one of torch.optim with its rates."""
import math

# An optimizer of the script's own: RMSprop as PyTorch has it.
RMSPROP = ("optim.define('rms', { options = { lr = 0.01, alpha = 0.9, eps = 0.01, decay = 0 }, states = { 'square' }, "
           "update = function(p, g, s, o) g = g + p * o.decay local square = s.square * o.alpha + g * g * (1 - o.alpha) "
           "return p - g / (square:sqrt() + o.eps) * o.lr, { square = square } end })")


class Optimizer:
    """Of parameters by name, whose paths `path` knows."""

    def __init__(self, dice, names, path):
        self.names, self.path = names, path
        self.kind = dice.choice(["sgd", "momentum", "adam", "adamw", "adagrad", "rms"])
        self.options = {"decay": dice.choice([0, 0, 0.1, 0.01])}
        if self.kind == "momentum":
            self.options |= {"momentum": dice.choice([0.9, 0.5]), "nesterov": dice.chance(0.5)}
        if self.kind.startswith("adam"):
            self.options |= {"b1": 0.8, "b2": dice.choice([0.9, 0.99])}
        if self.kind not in ("sgd", "momentum"):
            self.options["eps"] = 0.01  # gradients that are 0 but for rounding stay small steps
        self.peak = dice.choice([0.1, 0.03])
        self.schedule = dice.choice([None, None, "cosine", "linear", "constant"])
        self.warmup, self.floor = dice.choice([0, 1, 2]), 0.01
        self.frozen = [n for n in names if dice.chance(0.1)]
        if len(self.frozen) == len(names):
            self.frozen = []
        self.groups = []
        if dice.chance(0.3):
            self.groups.append((dice.choice(names), {"lr": 0.02, "decay": 0.05}))
        if dice.chance(0.15) and len(names) > 3:
            left = dice.choice(names)
            self.groups.append((left, {"frozen": True}))
        self.trained = [n for n in names if n not in self.frozen and not self.group_of(n).get("frozen")]
        if not self.trained:
            self.groups, self.frozen, self.trained = [], [], names

    def group_of(self, name):
        return next((options for match, options in self.groups if match == name), {})

    def freezing(self):
        return [f"model.{self.path(n)}:freeze()" for n in self.frozen]

    def lua(self):
        def table(options):
            return ", ".join(f"{k} = {str(v).lower() if isinstance(v, bool) else v}" for k, v in options.items())
        floor = "" if self.schedule == "constant" else f", floor = {self.floor}"
        rate = f"optim.{self.schedule} {{ peak = {self.peak}, warmup = {self.warmup}, steps = 4{floor} }}" if self.schedule else self.peak
        groups = ", ".join(f"{{ match = '{self.path(n)}', {table(o)} }}" for n, o in self.groups)
        make = RMSPROP if self.kind == "rms" else f"optim.{self.kind}"
        return f"({make}) {{ lr = {rate}, {table(self.options)}, groups = {{ {groups} }} }}"

    def rate(self, step):
        """From step 1."""
        if not self.schedule:
            return self.peak
        if step <= self.warmup:
            return self.peak * step / self.warmup
        way = min((step - self.warmup - 1) / (4 - self.warmup), 1)
        return {"constant": self.peak, "linear": self.peak + (self.floor - self.peak) * way,
                "cosine": self.floor + (self.peak - self.floor) * (1 + math.cos(math.pi * way)) / 2}[self.schedule]

    def torch(self, optim, parameters):
        """Of `parameters`, by name, a stepper: a function of the step, whose gradients are set."""
        o = self.options
        groups = [{"params": [parameters[n]], "weight_decay": self.group_of(n).get("decay", o["decay"]), "own": self.group_of(n).get("lr")}
                  for n in self.trained]
        more = {"eps": o.get("eps")} if "eps" in o else {}
        if self.kind.startswith("adam"):
            more["betas"] = (o["b1"], o["b2"])
        if self.kind == "momentum":
            more |= {"momentum": o["momentum"], "nesterov": o["nesterov"]}
        if self.kind == "rms":
            more["alpha"] = 0.9
        made = {"sgd": optim.SGD, "momentum": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "adagrad": optim.Adagrad,
                "rms": optim.RMSprop}[self.kind](groups, lr=0.1, **more)

        def step(number):
            for group in made.param_groups:
                group["lr"] = group["own"] if group["own"] is not None else self.rate(number)
            made.step()
        step.made = made
        return step
