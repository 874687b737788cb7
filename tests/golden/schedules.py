# SPDX-License-Identifier: Apache-2.0
"""PyTorch's schedules of schedules.lua. Writes schedules.json, {name: [rate of each step, ...]}."""
import json
import pathlib
import warnings

import torch
from torch.optim import lr_scheduler as lr

SCHEDULES = {
    "step": lambda o: lr.StepLR(o, 30),
    "step_half": lambda o: lr.StepLR(o, 7, gamma=0.5),
    "multistep": lambda o: lr.MultiStepLR(o, [10, 40, 40, 75]),
    "exponential": lambda o: lr.ExponentialLR(o, 0.95),
    "polynomial": lambda o: lr.PolynomialLR(o, 80, power=2),
    "polynomial_one": lambda o: lr.PolynomialLR(o, 100),
    "cosine_restarts": lambda o: lr.CosineAnnealingWarmRestarts(o, 30, eta_min=0.01),
    "cosine_restarts_longer": lambda o: lr.CosineAnnealingWarmRestarts(o, 10, T_mult=2),
    "one_cycle": lambda o: lr.OneCycleLR(o, 0.5, total_steps=100),
    "one_cycle_linear": lambda o: lr.OneCycleLR(o, 0.5, total_steps=100, pct_start=0.25, div_factor=10,
                                                final_div_factor=100, anneal_strategy="linear"),
    "one_cycle_three": lambda o: lr.OneCycleLR(o, 0.5, total_steps=100, pct_start=0.4, three_phase=True),
    "sequential": lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 0.2, total_iters=10), lr.ExponentialLR(o, 0.9),
                                                lr.StepLR(o, 20)], [10, 40]),
}
# These count from the rate before the first step, as optim.linear and optim.cosine do: 100 is their end.
BEFORE_FIRST = ("polynomial", "polynomial_one")


def rates(name):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule, found = SCHEDULES[name](optimizer), []
    for step in range(101):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step < 99 or name in BEFORE_FIRST:
            schedule.step()
    return found[1:] if name in BEFORE_FIRST else found[:100]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    lines = ",\n".join(f'"{name}": {json.dumps([float(f"{x:.12g}") for x in rates(name)])}' for name in SCHEDULES)
    pathlib.Path(__file__).with_suffix(".json").write_text(f"{{\n{lines}\n}}\n")
