# SPDX-License-Identifier: Apache-2.0
"""averages.lua in PyTorch. Writes averages.json, {kind: [[loss, squares of the average's parameters, of its buffers], ...,
[sum of the squares of what it predicts, 1, 1]]}."""
import json
import math
import pathlib

import torch
from torch import nn
from torch.optim import swa_utils

STEPS = 12
# How the average is updated; the first step that counts, and from one to the next; the step from which a weight is frozen.
KINDS = {"ema": (swa_utils.get_ema_multi_avg_fn(0.9), 1, 1, 0), "mean": (None, 1, 1, 0), "late": (None, 4, 3, 0),
         "late_ema": (swa_utils.get_ema_multi_avg_fn(0.5), 3, 2, 0),
         "frozen": (swa_utils.get_ema_multi_avg_fn(0.9), 1, 1, 5)}


def filled(n, *shape):
    return torch.tensor([math.sin(0.7 * i + 1.3 * n) for i in range(math.prod(shape))], dtype=torch.float64).reshape(shape)


def squares(tensors):
    return sum(t.double().pow(2).sum().item() for t in tensors if t.dim())  # not the count of batches


def figures(kind):
    average_of, first, every, frozen = KINDS[kind]
    net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 3)).double()
    for n, p in enumerate(net.parameters(), 1):
        p.data.copy_(filled(n, *p.shape))
    average = swa_utils.AveragedModel(net, multi_avg_fn=average_of)
    optimizer, lines = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), []
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(filled(20 + step, 8, 6)), filled(40 + step, 8, 3))
        loss.backward()
        if frozen and step >= frozen:
            net[0].weight.grad = None
        optimizer.step()
        if step >= first and (step - first) % every == 0:
            average.update_parameters(net)
        else:  # Orrery's buffers are always the model's
            for ours, theirs in zip(average.module.buffers(), net.buffers()):
                ours.copy_(theirs)
        lines.append([loss.item(), squares(average.module.parameters()), squares(average.module.buffers())])
    average.eval()
    return lines + [[average(filled(3, 8, 6)).pow(2).sum().item(), 1, 1]]


if __name__ == "__main__":
    lines = ",\n".join(f'"{kind}": {json.dumps([[float(f"{x:.9g}") for x in line] for line in figures(kind)])}' for kind in KINDS)
    pathlib.Path(__file__).with_suffix(".json").write_text(f"{{\n{lines}\n}}\n")
