# SPDX-License-Identifier: Apache-2.0
"""What the cases of edges.py give in PyTorch, in their own dtypes and, real ones, in f64: writes edges.json beside itself."""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

import edge_cases
import edge_layers
import edge_products

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool}
NAMES = {v: k for k, v in DTYPES.items()}


def tensor(dtype, shape, numbers):
    wide = torch.float64 if dtype in ("f32", "f64", "f16", "bf16") else torch.int64
    return torch.tensor(numbers, dtype=wide).reshape(shape).to(DTYPES[dtype])


def larger(x, y):
    """The larger one, the first of equal ones; NaN if one is, with no gradient."""
    return torch.where(x >= y, x, torch.where(x < y, y, (x + y).detach()))


def smaller(x, y):
    return -larger(-x, -y)


def descending(x, k):
    values, places = x.sort(dim=-1, stable=True, descending=True)
    return values[..., :k], places[..., :k]


def ascending(x):
    values, places = (-x).sort(dim=-1, stable=True, descending=True)
    return -values, places


def raise_error():
    raise ValueError("refused")


HELPERS = {f.__name__: f for f in (larger, smaller, descending, ascending, raise_error)}


def plain(x):
    values = x.detach().reshape(-1)
    return NAMES[x.dtype], tuple(x.shape), values.to(torch.float64 if x.is_floating_point() else torch.int64).tolist()


def computed(case, exact=False):
    """A list of (dtype, shape, numbers), or the error as text. `exact`: real numbers as f64."""
    names = {"torch": torch, "F": F, "math": math, **DTYPES, **HELPERS}
    for name, given in case.inputs.items():
        x = tensor(*given)
        names[name] = x.double() if exact and x.is_floating_point() else x
    if exact:
        names |= {n: torch.float64 for n in ("f32", "f16", "bf16")}
    slopes = [names[n].requires_grad_() for n in case.wanted]
    try:
        code = case.torch.strip().split("\n")
        exec("\n".join(code[:-1]), names)
        found = eval(code[-1], names)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if slopes:
            y = found[0]
            weights = ((torch.arange(y.numel()) % 3 + 1) * 0.5).to(y.dtype).reshape(y.shape)
            found += torch.autograd.grad(y, slopes, weights, materialize_grads=True)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return f"error: {error}".split("\n")[0]
    return [plain(x) for x in found]


def all_cases():
    torch.set_num_threads(1)
    return [case for group in edge_cases.GROUPS + edge_layers.GROUPS + edge_products.GROUPS for case in group()]


def recorded_cases():
    """Some of each group, of few numbers: by their place in all_cases()."""
    small = [i for i, case in enumerate(all_cases()) if sum(len(x[2]) for x in case.inputs.values()) <= 60]
    return small[::7]


if __name__ == "__main__":
    cases = all_cases()
    found = {i: [computed(cases[i]), computed(cases[i], exact=True)] for i in recorded_cases()}
    (HERE / "edges.json").write_text(json.dumps({"framework": torch.__version__, "cases": found}) + "\n")
