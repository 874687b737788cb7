# SPDX-License-Identifier: Apache-2.0
"""PyTorch's schedules of schedules.lua. Writes schedules.json, {name: [rate of each step, ...]}."""
import json
import math
import pathlib
import warnings

import torch
from torch.optim import lr_scheduler as lr

def warmed(optimizer, steps, schedule):
    """After so many steps with k / steps of the rate in step k."""
    return lr.SequentialLR(optimizer, [lr.LinearLR(optimizer, 1 / steps, total_iters=steps - 1), schedule], [steps])


SCHEDULES = {
    "step": lambda o: lr.StepLR(o, 30),
    "step_half": lambda o: lr.StepLR(o, 7, gamma=0.5),
    "multistep": lambda o: lr.MultiStepLR(o, [10, 40, 40, 75]),
    "exponential": lambda o: lr.ExponentialLR(o, 0.95),
    "cosine": lambda o: lr.CosineAnnealingLR(o, 100, eta_min=0.01),
    "cosine_warm": lambda o: warmed(o, 10, lr.CosineAnnealingLR(o, 90)),
    "linear": lambda o: lr.LinearLR(o, 1, 0.2, 80),
    "linear_warm": lambda o: warmed(o, 20, lr.LinearLR(o, 1, 0, 80)),
    "polynomial": lambda o: lr.PolynomialLR(o, 80, power=2),
    "polynomial_one": lambda o: lr.PolynomialLR(o, 100),
    "cosine_restarts": lambda o: lr.CosineAnnealingWarmRestarts(o, 30, eta_min=0.01),
    "cosine_restarts_longer": lambda o: lr.CosineAnnealingWarmRestarts(o, 10, T_mult=2),
    "one_cycle": lambda o: lr.OneCycleLR(o, 0.5, total_steps=100),
    "one_cycle_linear": lambda o: lr.OneCycleLR(o, 0.5, total_steps=100, pct_start=0.25, div_factor=10,
                                                final_div_factor=100, anneal_strategy="linear"),
    "one_cycle_three": lambda o: lr.OneCycleLR(o, 0.5, total_steps=100, pct_start=0.4, three_phase=True),
    "chained": lambda o: lr.ChainedScheduler([lr.LinearLR(o, 0.2, total_iters=10), lr.ExponentialLR(o, 0.95), lr.StepLR(o, 30)]),
    "sequential": lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 0.2, total_iters=10), lr.ExponentialLR(o, 0.9),
                                                lr.StepLR(o, 20)], [10, 40]),
}
PLATEAUS = {
    "plateau": dict(patience=3),
    "plateau_cool": dict(factor=0.5, patience=1, cooldown=4, threshold_mode="abs", threshold=0.02),
    "plateau_max": dict(mode="max", factor=0.8, patience=0, min_lr=0.1, threshold=0.1, eps=0.05),
    "plateau_max_abs": dict(mode="max", factor=0.9, patience=2, cooldown=1, threshold_mode="abs"),
}


def rates(name):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule, found = SCHEDULES[name](optimizer), []
    for step in range(100):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step < 99:  # OneCycleLR refuses more
            schedule.step()
    return found


def rates_on_plateau(name):
    """Those of a schedule that is told of a value after each step."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule, found = lr.ReduceLROnPlateau(optimizer, **PLATEAUS[name]), []
    for step in range(1, 101):
        found.append(optimizer.param_groups[0]["lr"])
        schedule.step(2 / (1 + 0.1 * min(step, 40)) + 0.05 * math.sin(step))
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {name: rates(name) for name in SCHEDULES} | {name: rates_on_plateau(name) for name in PLATEAUS}
    lines = ",\n".join(f'"{name}": {json.dumps([float(f"{x:.12g}") for x in each])}' for name, each in found.items())
    pathlib.Path(__file__).with_suffix(".json").write_text(f"{{\n{lines}\n}}\n")
