# SPDX-License-Identifier: Apache-2.0
"""What the scripts of random_models.py should print, by PyTorch in f64: writes random_models.json beside itself."""
import json
import math
import pathlib
import warnings

import torch
import torch.nn.functional as F

import random_layers_torch as T
from random_models import STEPS
from random_runs import RECORDED, apart, condensed, model_of

HERE = pathlib.Path(__file__).resolve().parent


def tensor(shape, numbers, dtype):
    return torch.tensor(numbers, dtype=dtype).reshape(shape)


def trained(model):
    """[(loss, norm of the gradients) of each step], the loss of the first batch afterwards, and states as lists."""
    code, fields = compile("\n".join(model.torch), "model", "exec"), model.batch_fields()
    states = T.States({n: torch.full(shape, float(x), dtype=torch.float64) for n, (shape, x) in model.states.items()})
    states.microbatches = model.microbatches
    parameters = {n: tensor(*v, torch.float64).requires_grad_() for n, v in model.parameters.items()}
    kept = {n: tensor(*v, torch.int64) for n, v in model.indices.items()}
    optimizer = model.optimizer.torch(torch.optim, parameters)
    moving = [parameters[n] for n in model.optimizer.trained]

    def loss_of(step):
        batch = {n: tensor(*model.rows(step, *v), torch.int64 if n in model.indices else torch.float64) for n, v in fields.items()}
        names = {"torch": torch, "F": F, "T": T, "S": states, "math": math} | parameters | kept | batch
        for n in model.fields:
            names[n].requires_grad_()
        exec(code, names)
        return names["loss"], names.get("outputs", [])

    steps, outputs = [], {}
    for step in range(STEPS):
        loss, made = loss_of(step)
        outputs |= {f"step{step + 1}_a{i}": t.detach().clone() for i, t in enumerate(made)}
        gradients = torch.autograd.grad(loss, moving, allow_unused=True)  # None: the optimizer passes over it
        norm = sum((g ** 2).sum() for g in gradients if g is not None).sqrt().item()
        steps.append((loss.item(), norm))
        scale = min(1, model.clip / norm) if model.clip and norm else 1
        for p, g in zip(moving, gradients):
            p.grad = None if g is None else g * scale
        optimizer(step + 1)
        states.step()
        if model.written and step == 0:
            name, numbers = model.written
            parameters[name].data.copy_(torch.tensor(numbers).reshape(parameters[name].shape))
    states.training = False
    after = loss_of(0)[0].item()
    return steps, after, {n: t.detach().reshape(-1).tolist() for n, t in (parameters | states | outputs).items()}


def is_sensitive(model):
    """Whether rounding alone, in the places of a rate in f32, could make the difference."""
    want, kept = condensed(trained(model)), model.parameters
    by = {"f32": 1e-6, "f64": 1e-7}[model.dtype]
    model.parameters = {n: (shape, [x * (1 + by * (-1) ** i) for i, x in enumerate(numbers)]) for n, (shape, numbers) in kept.items()}
    found, model.parameters = condensed(trained(model)), kept
    return bool(apart(found, want, model.tolerance / 3))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # PyTorch's about padding
    torch.set_num_threads(1)
    models = map(model_of, range(RECORDED))
    found = [None if is_sensitive(model) else condensed(trained(model)) for model in models]
    (HERE / "random_models.json").write_text(json.dumps({"framework": torch.__version__, "models": found}) + "\n")
