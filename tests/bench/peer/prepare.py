# SPDX-License-Identifier: Apache-2.0
"""prepare.py WORKLOAD: writes what all contestants start from (initial weights and batches as .npy)
and the losses of eager PyTorch's first steps, which all must reproduce. Kept from run to run."""
import json
import sys

import numpy
import torch

import training
from workloads import STEPS, WORKLOADS


def save(directory, name, tensor):
    numpy.save(directory / (name + ".npy"), tensor.detach().cpu().numpy())


def batches(work, generator):
    if work.widths:
        x = torch.randn(STEPS * work.batch, work.widths[0], generator=generator)
        return x, x[:, :work.widths[-1]].argmax(1).int()
    if work.larger:
        _, _, shape, classes = work.larger
        total = (STEPS * work.batch, *shape)
        if len(shape) > 1:
            return (torch.randn(total, generator=generator),
                    torch.randint(0, classes, total[:1], generator=generator, dtype=torch.int32))
        return tuple(torch.randint(1, classes, total, generator=generator, dtype=torch.int32) for _ in "xy")
    ids = torch.randint(0, work.gpt["vocab"], (STEPS * work.batch, work.ctx + 1),
                        generator=generator, dtype=torch.int32)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def main():
    work = WORKLOADS[sys.argv[1]]
    done = work.directory / "losses.json"
    if done.exists() and json.loads(done.read_text())["torch"] == torch.__version__:
        return
    work.directory.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(1)
    model = training.make_model(work)
    training.models.initialise(model, generator)
    for name, p in training.models.parameters(model):
        save(work.directory, name, p)
    for name, tensor in zip("xy", batches(work, generator)):
        save(work.directory, name, tensor)
    step = training.Step(work, model)
    losses = [step().item() for _ in range(STEPS)]
    done.write_text(json.dumps({"torch": torch.__version__, "losses": losses}))


if __name__ == "__main__":
    main()
