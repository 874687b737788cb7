# SPDX-License-Identifier: Apache-2.0
"""adversarial.lua in PyTorch. Writes adversarial.json, [[loss, norm of the gradients], ...]."""
import json
import math
import pathlib

import torch
from torch.nn import functional as F


def filled(n, *shape):
    return torch.tensor([math.sin(0.7 * i + 1.3 * n) for i in range(math.prod(shape))]).reshape(shape)


def unit(x):
    return x / (x.norm() + 1e-12)


maker = {"w1": filled(1, 8, 2), "b1": filled(2, 8), "gain": torch.ones(8), "shift": torch.zeros(8),
         "w4": filled(3, 2, 8), "b4": filled(4, 2)}
critic = {"w1": filled(5, 8, 2), "b1": filled(6, 8), "w3": filled(8, 1, 8), "b3": filled(9, 1)}
vectors = {"1": filled(7, 8), "3": filled(10, 1)}
for p in [*maker.values(), *critic.values()]:
    p.requires_grad_()


def make(noise):
    hidden = F.linear(noise, maker["w1"], maker["b1"])
    hidden = F.batch_norm(hidden, None, None, maker["gain"], maker["shift"], training=True)
    return F.linear(hidden.relu(), maker["w4"], maker["b4"])


def spectral(x, name):
    weight = critic["w" + name]
    with torch.no_grad():
        right = unit(weight.T @ vectors[name])
        left = vectors[name] = unit(weight @ right)
    return F.linear(x, weight / (left @ weight @ right), critic["b" + name])


def judge(x):
    return spectral(spectral(x, "1").tanh(), "3")


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    norm = sum(p.grad.pow(2).sum() for p in optimizer.param_groups[0]["params"]).sqrt()
    optimizer.step()
    return [loss.item(), norm.item()]


def trained():
    told, fooled = (torch.optim.Adam(m.values(), lr=0.02, betas=(0.5, 0.999)) for m in (critic, maker))
    lines = []
    for s in range(1, 7):
        noise = filled(20 + s, 8, 2)
        for k in (1, 2):
            real, share = filled(40 + 2 * s + k, 8, 2), filled(60 + 2 * s + k, 8, 1)
            fake = make(noise).detach()
            mixed = (real * share + fake * (1 - share)).requires_grad_()
            [slope] = torch.autograd.grad(judge(mixed).sum(), mixed, create_graph=True)
            penalty = (slope.norm(dim=1) - 1).pow(2).mean()
            lines.append(step(told, judge(fake).mean() - judge(real).mean() + 10 * penalty))
        lines.append(step(fooled, -judge(make(noise)).mean()))
    return lines


if __name__ == "__main__":
    lines = ",\n".join(json.dumps([float(f"{x:.9g}") for x in line]) for line in trained())
    pathlib.Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
