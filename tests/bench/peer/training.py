# SPDX-License-Identifier: Apache-2.0
"""PyTorch's training step, as fast as PyTorch makes it: fused AdamW, gradients set to none, nothing
read back."""
import pathlib
import sys

import numpy
import torch

from workloads import B1, B2, DECAY, EPS, RATE, STEPS

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "golden"))
import models  # noqa: E402


def make_model(work):
    return models.MLP(list(work.widths)) if work.widths else models.GPT(**work.gpt)


def load(work, model):
    with torch.no_grad():
        for name, p in models.parameters(model):
            p.copy_(torch.from_numpy(numpy.load(work.directory / (name + ".npy"))))


class Step:
    """Calling it trains on the next batch and returns the loss. Of several ranks each takes its part
    of every batch. `wrap` is what compiles or distributes the loss function's model."""

    def __init__(self, work, model, wrap=lambda model: model, rank=0, ranks=1, compiled=False):
        self.model = wrap(model)  # first: it may put others in the place of the parameters
        groups = models.groups(model, DECAY)
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(B1, B2), eps=EPS, fused=True)
        self.loss_of = torch.compile(models.loss_of) if compiled else models.loss_of
        x, y = (torch.from_numpy(numpy.load(work.directory / (name + ".npy"))) for name in "xy")
        share = work.batch // ranks
        self.batches = [(x[at:at + share], y[at:at + share])
                        for at in range(rank * share, STEPS * work.batch, work.batch)]
        self.count = 0

    def __call__(self):
        x, y = self.batches[self.count % STEPS]
        self.count += 1
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()
