# SPDX-License-Identifier: Apache-2.0
"""lbfgs.lua in PyTorch. Writes lbfgs.json, {kind: [loss before each step, ..., evaluations, loss at the end]}."""
import json
import math
import pathlib

import torch
from torch import nn

HIDDEN, TIME, BATCH, STEPS = 5, 12, 6, 3
KINDS = {
    "plain": dict(lr=0.2, max_iter=8, history_size=3),
    "wolfe": dict(lr=0.8, line_search_fn="strong_wolfe"),
    "wolfe_short": dict(line_search_fn="strong_wolfe", max_iter=6, max_eval=9, history_size=2),
    "wolfe_coarse": dict(line_search_fn="strong_wolfe", tolerance_change=1e-4, tolerance_grad=3e-3),
}


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LSTMCell(1, HIDDEN), nn.LSTMCell(HIDDEN, HIDDEN)
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        one = two = None
        found = []
        for now in x.unbind(1):
            one = self.first(now, one)
            two = self.second(one[0], two)
            found.append(self.head(two[0]))
        return torch.stack(found, 1)


def trained(kind):
    net = Sequence().double()
    parameters = [p for _, p in sorted(net.named_parameters())]
    with torch.no_grad():
        for n, p in enumerate(parameters, 1):
            p.copy_(torch.tensor([0.4 * math.sin(0.7 * i + 1.3 * n) for i in range(p.numel())], dtype=torch.float64).reshape(p.shape))
    sine = torch.tensor([[math.sin(0.5 * t + i) for t in range(1, TIME + 2)] for i in range(1, BATCH + 1)], dtype=torch.float64)
    x, y = sine[:, :-1, None], sine[:, 1:, None]
    optimizer, evaluations = torch.optim.LBFGS(parameters, **KINDS[kind]), 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(STEPS)]
    return losses + [evaluations, nn.functional.mse_loss(net(x), y).item()]


if __name__ == "__main__":
    lines = ",\n".join(f'"{kind}": {json.dumps(trained(kind))}' for kind in KINDS)
    pathlib.Path(__file__).with_suffix(".json").write_text(f"{{\n{lines}\n}}\n")
