# SPDX-License-Identifier: Apache-2.0
"""Random models under strategies that train ranks apart, and what PyTorch makes of as many models in one process: the
recursions of average, diloco, easgd and gossip, with batches that leave some ranks fewer samples or none.
"""
import math
from fractions import Fraction

import torch
import torch.nn.functional as F

import random_layers_torch as T
from random_models import STEPS
from random_models_record import tensor

KINDS = {"average": "", "average of states": ", states = true", "diloco": ", lr = 0.7, momentum = 0.9", "easgd": ", alpha = 0.2",
         "gossip": ""}
INNER = {"": 1, "strategy.accumulate {}": 1, "strategy.recompute { path = '' }": 1, "strategy.data {}": 2,
         "strategy.data {}, strategy.zero { stage = 1, bucket = 64 }": 2, "strategy.data {}, strategy.zero { stage = 3 }": 2,
         "strategy.tensor { size = 2 }": 2, "strategy.pipeline { size = 2 }": 2}
KEPT = ("exp_avg", "exp_avg_sq", "momentum_buffer", "sum", "square_avg")  # PyTorch's names of optimizer states


class Apart:
    """A stack of one such strategy, and of one that spreads each copy of the model."""

    def __init__(self, dice, model):
        self.model, self.kind, self.every = model, dice.choice(list(KINDS)), 1 + dice.below(3)
        self.copies = dice.choice([n for n in (1, 2, 3, 4) if n <= model.microbatches])
        inner = dice.choice(list(INNER))
        if INNER[inner] > 1 and (self.copies != 2 or model.microbatches < 4 and "data" in inner):
            inner = ""
        self.ranks = self.copies * INNER[inner]
        own = f"strategy.{self.kind.split()[0]} {{ size = {self.copies}, every = {self.every}{KINDS[self.kind]} }}"
        self.stack = f"strategy = {{ {own}, {inner} }}, "
        # Of a value of the batch the copies' results are joined, added or averaged; of weights they are averaged.
        batched = {v.name: v.batched for v in model.values}
        self.joins = [("join" if ":" not in lua else "add" if "sum" in lua else "mean") if batched[lua.split(":")[0]] else "copies"
                      for lua, _ in model.outputs]

    def can_be_told(self):
        """Not where samples read the whole batch, where the loss is a mean by weights of the samples, where a copy begins without
        samples, or where a penalty in the loss belongs to copies of unequal shares."""
        model = self.model
        weighted = any("weights =" in line or "ignore =" in line for line in model.lua)
        shares = [[b - a for a, b, _ in (self.rows_of(step, r) for r in range(self.copies))] for step in range(STEPS)]
        uneven = any(len({n for n in some if n}) > 1 for some in shares)
        penalty = any(lua.endswith((":sumsq() * 0.01", ":abs():mean() * 0.1")) for lua, _ in model.losses)
        return not (model.whole or weighted or 0 in shares[0] or uneven and penalty)

    def rows_of(self, step, copy):
        """The first and last row of a copy's samples, and how many a microbatch has."""
        m, size = self.model.microbatches, self.model.sizes[step]
        each = -(-size // m)
        return min(m * copy // self.copies * each, size), min(m * (copy + 1) // self.copies * each, size), each


class Copy:
    def __init__(self, model):
        self.model, self.code, self.fields = model, compile("\n".join(model.torch), "model", "exec"), model.batch_fields()
        self.kept = {n: tensor(*v, torch.int64) for n, v in model.indices.items()}
        self.states = T.States({n: torch.full(shape, float(x), dtype=torch.float64) for n, (shape, x) in model.states.items()})
        self.parameters = {n: tensor(*v, torch.float64).requires_grad_() for n, v in model.parameters.items()}
        self.optimizer = model.optimizer.torch(torch.optim, self.parameters)
        self.moving = [self.parameters[n] for n in model.optimizer.trained]

    def loss(self, step, first, last, each):
        """The loss of these rows of a batch, and the further results."""
        self.states.microbatches = Fraction(last - first, each)
        batch = {n: tensor(*self.model.rows(step, *v), torch.int64 if n in self.model.indices else torch.float64)[first:last]
                 for n, v in self.fields.items()}
        names = {"torch": torch, "F": F, "T": T, "S": self.states, "math": math} | self.parameters | self.kept | batch
        for n in self.model.fields:
            names[n].requires_grad_()
        exec(self.code, names)
        return names["loss"], [t.detach().clone() for t in names.get("outputs", [])]

    def train(self, step, first, last, each):
        """(loss, further results, norm of the gradients); a copy without samples changes nothing."""
        if first == last:
            return None
        loss, outputs = self.loss(step, first, last, each)
        gradients = torch.autograd.grad(loss, self.moving, allow_unused=True)
        norm = sum((g ** 2).sum() for g in gradients if g is not None).sqrt().item()
        scale = min(1, self.model.clip / norm) if self.model.clip and norm else 1
        for p, g in zip(self.moving, gradients):
            p.grad = None if g is None else g * scale
        self.optimizer(step + 1)
        self.states.step()
        return loss.item(), outputs, norm


def mean(tensors, weights=None):
    weights = weights or [1] * len(tensors)
    return sum(t * w for t, w in zip(tensors, weights)) / sum(weights)


class Meeting:
    """What copies do every so many steps."""

    def __init__(self, apart, copies):
        self.kind, self.copies, self.round = apart.kind, copies, 0
        self.anchor = [p.detach().clone() for p in copies[0].moving]
        self.velocity = [torch.zeros_like(p) for p in self.anchor]

    @torch.no_grad()
    def meet(self):
        for i in range(len(self.anchor)):
            mine = [c.moving[i] for c in self.copies]
            for p, new in zip(mine, self.combined(i, [p.clone() for p in mine])):
                p.copy_(new)
        if self.kind == "average of states":
            self.average_states()
        self.round += 1

    def combined(self, i, mine):
        if self.kind == "easgd":
            pulls = [0.2 * (p - self.anchor[i]) for p in mine]
            self.anchor[i] = self.anchor[i] + sum(pulls)
            return [p - pull for p, pull in zip(mine, pulls)]
        if self.kind == "gossip":
            hop = self.round % max(1, len(mine) - 1) + 1
            return [(p + mine[(r - hop) % len(mine)]) / 2 for r, p in enumerate(mine)]
        if self.kind == "diloco":
            change = self.anchor[i] - mean(mine)
            self.velocity[i] = self.velocity[i] * 0.9 + change
            self.anchor[i] = self.anchor[i] - 0.7 * (change + 0.9 * self.velocity[i])
            return [self.anchor[i]] * len(mine)
        return [mean(mine)] * len(mine)

    def average_states(self):
        for name in list(self.copies[0].states):
            new = mean([c.states[name] for c in self.copies])
            for c in self.copies:
                dict.__setitem__(c.states, name, new)
        for i in range(len(self.anchor)):
            states = [c.optimizer.made.state[c.moving[i]] for c in self.copies]
            for key in KEPT:
                if states[0].get(key) is not None:
                    new = mean([s[key] for s in states])
                    for s in states:
                        s[key].copy_(new)


def trained(apart):
    """As random_models_record.trained. Evaluation and what is read take the mean of the copies."""
    model, copies = apart.model, [Copy(apart.model) for _ in range(apart.copies)]
    meeting, steps, outputs = Meeting(apart, copies), [], {}
    for step in range(STEPS):
        rows = [apart.rows_of(step, r) for r in range(len(copies))]
        made = [c.train(step, *at) for c, at in zip(copies, rows)]
        shares, made = [b - a for a, b, _ in rows if a < b], [m for m in made if m]
        steps.append((mean([m[0] for m in made], shares), mean([m[2] for m in made])))
        for i, how in enumerate(apart.joins):
            each = [m[1][i] for m in made]
            outputs[f"step{step + 1}_a{i}"] = (torch.cat(each) if how == "join" else sum(each) if how == "add"
                                               else mean(each, shares if how == "mean" else None))
        if (step + 1) % apart.every == 0:
            meeting.meet()
        if model.written and step == 0:
            for c in copies:
                c.parameters[model.written[0]].data.copy_(tensor(model.parameters[model.written[0]][0], model.written[1], torch.float64))
    one = copies[0]
    for name, p in one.parameters.items():
        p.data.copy_(mean([c.parameters[name].data for c in copies]))
    for name in list(one.states):
        dict.__setitem__(one.states, name, mean([c.states[name] for c in copies]))
    one.states.training, size = False, model.sizes[0]
    after = one.loss(0, 0, size, -(-size // model.microbatches))[0].item()
    return steps, after, {n: t.detach().reshape(-1).tolist() for n, t in (one.parameters | one.states | outputs).items()}
