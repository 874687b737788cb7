# SPDX-License-Identifier: Apache-2.0
#
# Writes the golden files beside itself with PyTorch on the CPU in f32: initial weights
# (*.safetensors), the batches in order (*.npy), and losses and gradient norms (figures.json).
import copy
import json
import math
import pathlib
import struct

import numpy
import torch
from torch.nn import functional as F

import layer_cases
import models
import recurrent

HERE = pathlib.Path(__file__).parent
STEPS, BATCH = 20, 6
IGNORED = -1


def save_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors:
        raw = tensor.detach().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def cosine(step, peak, warmup, steps, floor):
    if step <= warmup:
        return peak * step / warmup
    t = (step - warmup - 1) / (steps - warmup)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * t))


def linear(step, peak, warmup, steps, floor):
    if step <= warmup:
        return peak * step / warmup
    return peak + (floor - peak) * (step - warmup - 1) / (steps - warmup)


def train(model, optimizer, rate, x, y, parts=1):
    """STEPS steps over consecutive batches, whose parts go through the model one by one: losses, and gradient norms
    before clipping."""
    losses, norms = [], []
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        rows = slice((step - 1) * BATCH, step * BATCH)
        optimizer.zero_grad(set_to_none=True)
        loss = 0.0
        for part in zip(x[rows].chunk(parts), y[rows].chunk(parts)):
            share = models.loss_of(model, *part) / parts
            share.backward()
            loss += share.item()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        losses.append(loss)
    return {"loss": losses, "grad_norm": norms}


def weighted_case(model, x, y, weights):
    """One uneven batch whose positions weigh differently and some of whose labels do not count."""
    for p in model.parameters():
        p.grad = None
    each = F.cross_entropy(model(x).flatten(0, -2), y.flatten().long(), reduction="none",
                           ignore_index=IGNORED)
    counted = weights.flatten() * (y.flatten() != IGNORED)
    loss = (each * counted).sum() / counted.sum()
    loss.backward()
    norm = torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in model.parameters()]))
    return {"loss": loss.item(), "grad_norm": norm.item()}


def plain_case(model, x, y):
    return weighted_case(model, x, y, torch.ones(y.shape))


def save_arrays(**arrays):
    for name, array in arrays.items():
        numpy.save(HERE / (name.replace("_", ".") + ".npy"), array.numpy())


def mlp(generator):
    model = models.MLP([16, 32, 32, 4])
    models.initialise(model, generator)
    save_safetensors(HERE / "mlp.safetensors", models.parameters(model))
    x = torch.randn(STEPS * BATCH, 16, generator=generator) * 2
    y = (x[:, :4] + x[:, 4:8]).argmax(1).int()
    save_arrays(mlp_x=x, mlp_y=y)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9, nesterov=True,
                                weight_decay=1e-2)
    return train(model, optimizer, lambda step: linear(step, 0.1, 3, STEPS, 0.01), x, y)


def train_images(model, x, y, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9, nesterov=True, weight_decay=1e-2)
    return train(model, optimizer, lambda step: linear(step, 0.1, 3, STEPS, 0.01), x, y, **options)


def images(generator):
    """The convolutional models, with the loss of the first batch in evaluation after the steps."""
    x = torch.randn(STEPS * BATCH, 3, 8, 8, generator=generator)
    y = x.mean((2, 3)).mul(8).argmax(1).int() + (x[:, 0, 0, 0] > 1)
    save_arrays(images_x=x, images_y=y.int())
    found = {}
    for name, make in (("cnn", models.cnn), ("depthwise", models.depthwise)):
        model = make()
        models.initialise(model, generator)
        save_safetensors(HERE / (name + ".safetensors"), models.parameters(model))
        found[name + " in parts"] = train_images(copy.deepcopy(model), x, y, parts=3)
        found[name] = train_images(model, x, y)
        model.eval()
        loss = models.loss_of(model, x[:BATCH], y[:BATCH]).item()
        for series in found[name].values():
            series.append(loss)
    return found


def gpt(generator):
    model = models.GPT(vocab=65, positions=16, dim=32, heads=2, layers=2)
    models.initialise(model, generator)
    save_safetensors(HERE / "gpt.safetensors", models.parameters(model))
    x = torch.randint(0, 65, (STEPS * BATCH, 16), generator=generator, dtype=torch.int32)
    y = ((3 * x + 7) % 65).int()
    ragged = y[:7].clone()
    ragged[2, 9:], ragged[5, 1:], ragged[6, :] = IGNORED, IGNORED, IGNORED
    weights = torch.rand(7, 16, generator=generator) * 2
    save_arrays(gpt_x=x, gpt_y=y, ragged_x=x[:7], ragged_y=ragged, ragged_w=weights)
    cases = {"even": plain_case(model, x[:7], y[:7]),
             "weighted": weighted_case(model, x[:7], ragged, weights)}
    optimizer = torch.optim.AdamW(models.groups(model, 0.1), betas=(0.9, 0.99), eps=1e-8)
    figures = train(model, optimizer, lambda step: cosine(step, 1e-2, 4, STEPS, 1e-3), x, y)
    return figures, cases


def recurrent_case(kind, generator):
    start, text, figures = recurrent.figures(kind, generator)
    save_safetensors(HERE / f"{kind}.safetensors", start)
    save_arrays(**{f"{kind}_text": text})
    return figures


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(20)
    gpt_figures, cases = gpt(generator)
    figures = {"framework": f"PyTorch {torch.__version__.split('+')[0]}, CPU, f32",
               "mlp": mlp(generator), "gpt": gpt_figures, "batches": cases, **images(generator),
               "layers": layer_cases.figures()}
    for kind in ("lstm", "gru"):
        figures[kind] = recurrent_case(kind, torch.Generator().manual_seed(20))
    (HERE / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
