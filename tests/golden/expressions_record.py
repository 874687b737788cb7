# SPDX-License-Identifier: Apache-2.0
"""What the losses of expressions.py should print, by PyTorch in f64: writes expressions.json beside itself."""
import json
import pathlib

import torch
import torch.nn.functional as F

from expressions import RATE, STEPS, Loss

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = 150


def trained(loss):
    """A pair (loss, norm of the gradients) for each step, and the sum of each parameter in the end."""
    def tensor(shape, numbers, dtype):
        return torch.tensor(numbers, dtype=dtype).reshape(shape)

    names = {"torch": torch, "F": F}
    names |= {n: tensor(*v, torch.float64) for n, v in (loss.parameters | loss.fields).items()}
    names |= {n: tensor(*v, torch.int64) for n, v in loss.indices.items()}
    steps, code = [], compile("\n".join(loss.torch), "loss", "exec")
    for _ in range(STEPS):
        parameters = [names[n].detach().requires_grad_() for n in loss.parameters]
        names |= dict(zip(loss.parameters, parameters))
        exec(code, names)
        gradients = torch.autograd.grad(names["loss"], parameters, materialize_grads=True)
        norm = sum((g ** 2).sum() for g in gradients).sqrt().item()
        steps.append((names["loss"].item(), norm))
        scale = min(1, loss.clip / norm) if loss.clip and norm else 1
        names |= {n: p.detach() - RATE * scale * g for n, p, g in zip(loss.parameters, parameters, gradients)}
    return {"steps": steps, "parameters": {n: names[n].sum().item() for n in loss.parameters}}


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = {"framework": torch.__version__, "losses": [trained(Loss(seed)) for seed in range(RECORDED)]}
    (HERE / "expressions.json").write_text(json.dumps(found) + "\n")
