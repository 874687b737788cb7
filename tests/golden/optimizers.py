# SPDX-License-Identifier: Apache-2.0
"""optimizers.lua in PyTorch: its RMSprop, Muon, AdamW and SGD, and lion, lamb and lars by the formulas of their papers.
Writes optimizers.json, {kind: [loss, ..., sum of the squares of the parameters]}."""
import json
import math
import pathlib
from unittest import mock

import torch
from torch.nn import functional as F


def filled(n, *shape):
    return torch.tensor([math.sin(0.7 * i + 1.3 * n) for i in range(math.prod(shape))]).reshape(shape)


class ByHand:
    """Of all parameters, by `direction(state, p, gradient, step)`, which is subtracted."""

    def __init__(self, parameters, direction):
        self.parameters, self.direction, self.steps = parameters, direction, 0
        self.states = [{} for _ in parameters]

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for state, p in zip(self.states, self.parameters):
            p -= self.direction(state, p, p.grad, self.steps)


def lion(state, p, g, _, lr=0.01, b1=0.9, b2=0.99, decay=0.1):
    m = state.get("m", torch.zeros_like(p))
    state["m"] = b2 * m + (1 - b2) * g
    return lr * (torch.sign(b1 * m + (1 - b1) * g) + decay * p)


def lamb(state, p, g, step, lr=0.05, b1=0.9, b2=0.99, eps=1e-6, decay=0.1):
    state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
    state["v"] = b2 * state.get("v", 0) + (1 - b2) * g ** 2
    r = state["m"] / (1 - b1 ** step) / (torch.sqrt(state["v"] / (1 - b2 ** step)) + eps) + decay * p
    return lr * p.norm() / r.norm() * r


def lars(state, p, g, _, lr=0.5, momentum=0.9, trust=0.1, decay=0.1):
    local = trust * p.norm() / (g.norm() + decay * p.norm())
    state["v"] = momentum * state.get("v", 0) + lr * local * (g + decay * p)
    return state["v"]


O = torch.optim
OF_TORCH = {  # for 30 steps, in f64: some take steps by signs
    "momentum": (O.SGD, dict(lr=0.05, momentum=0.9, dampening=0.4, weight_decay=0.1)),
    "clip_value": (O.SGD, dict(lr=0.1, momentum=0.9)),
    "nesterov": (O.SGD, dict(lr=0.03, momentum=0.9, nesterov=True, weight_decay=0.1)),
    "adadelta": (O.Adadelta, dict(rho=0.8, weight_decay=0.1)),
    "adadelta_slow": (O.Adadelta, dict(lr=0.3, eps=1e-3)),
    "adamax": (O.Adamax, dict(lr=0.02, betas=(0.9, 0.9), weight_decay=0.1)),
    "nadam": (O.NAdam, dict(lr=0.01, weight_decay=0.1)),
    "nadam_decoupled": (O.NAdam, dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.1)),
    "radam": (O.RAdam, dict(lr=0.02, weight_decay=0.1)),
    "radam_decoupled": (O.RAdam, dict(lr=0.02, betas=(0.9, 0.9), weight_decay=0.1, decoupled_weight_decay=True)),
    "rprop": (O.Rprop, {}),
    "rprop_bounded": (O.Rprop, dict(lr=0.02, etas=(0.7, 1.5), step_sizes=(1e-3, 0.05))),
    "adafactor": (O.Adafactor, dict(eps=(2 ** -23, 1e-3), weight_decay=0.1)),
    "adafactor_fast": (O.Adafactor, dict(lr=0.5, beta2_decay=-0.5, d=1.5, eps=(2 ** -23, 0.9))),
}


def clip_value(*parameters):
    torch.nn.utils.clip_grad_value_(parameters, 0.03)


def clip_groups(w1, b1, w2, b2, w3, b3):
    for parameters, limit in ([b1, b2, b3], 0.05), ([w3], 0.15), ([w2], 0.04), ([w1], 0.1):
        torch.nn.utils.clip_grad_norm_(parameters, limit)
    torch.nn.utils.clip_grad_value_([w3], 0.04)


CLIPS = {"clip_value": clip_value, "clip_groups": clip_groups}
FEW = {"adafactor_fast": 6}  # its steps are so long that rounding soon tells


class Muon(torch.optim.Muon):
    """In f32 throughout."""

    def step(self):
        with mock.patch.object(torch, "bfloat16", torch.float32):
            super().step()


def optimizers(kind, w1, b1, w2, b2, w3, b3):
    if kind == "clip_groups":
        return [O.SGD([w1, b1, b2, w3, b3], lr=0.1, momentum=0.9), O.SGD([w2], lr=0.05, momentum=0.9)]
    if kind in OF_TORCH:
        make, options = OF_TORCH[kind]
        return [make([w1, b1, w2, b2, w3, b3], **options)]
    everything, weights, biases = [w1, b1, w2, b2, w3, b3], [w1, w2, w3], [b1, b2, b3]
    by_hand = {"lion": lion, "lamb": lamb, "lars": lars}
    if kind in by_hand:
        return [ByHand(everything, by_hand[kind])]
    if kind == "rmsprop":
        return [torch.optim.RMSprop(everything, lr=0.02, alpha=0.9, weight_decay=0.1, eps=1e-3)]
    if kind == "muon":
        return [Muon(weights, lr=0.05), torch.optim.AdamW(biases, lr=0.02, betas=(0.9, 0.99), weight_decay=0)]
    return [Muon([w1, w2], lr=0.05, nesterov=False, adjust_lr_fn="match_rms_adamw"),
            torch.optim.SGD([b1, b2], lr=0.02, momentum=0.9), torch.optim.SGD([w3, b3], lr=0.1)]


def trained(kind):
    wide, steps = (torch.float64, FEW.get(kind, 30)) if kind in OF_TORCH else (torch.float32, 8)
    shapes = [(12, 6), (12,), (8, 12), (8,), (3, 8), (3,)]
    w1, b1, w2, b2, w3, b3 = parameters = [filled(n, *shape).to(wide).requires_grad_() for n, shape in enumerate(shapes, 1)]
    x, y = filled(20, 8, 6).to(wide), filled(21, 8, 3).to(wide)
    steppers, figures = optimizers(kind, *parameters), []
    for step in range(1, steps + 1):
        if kind == "muon_as_adamw":
            steppers[-1].param_groups[0]["lr"] = 0.1 * (1 - (step - 1) / 8)
        loss = F.mse_loss(F.linear(F.linear(F.linear(x, w1, b1).tanh(), w2, b2).tanh(), w3, b3), y)
        for p in parameters:
            p.grad = None
        loss.backward()
        CLIPS.get(kind, lambda *_: None)(*parameters)
        for stepper in steppers:
            stepper.step()
        figures.append(loss.item())
    return figures + [sum(p.pow(2).sum() for p in parameters).item()]


if __name__ == "__main__":
    kinds = ["rmsprop", "lion", "lamb", "lars", "muon", "muon_as_adamw", "clip_groups", *OF_TORCH]
    lines = ",\n".join(f'"{kind}": {json.dumps([float(f"{x:.9g}") for x in trained(kind)])}' for kind in kinds)
    pathlib.Path(__file__).with_suffix(".json").write_text(f"{{\n{lines}\n}}\n")
