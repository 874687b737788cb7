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
import larger  # noqa: E402


def make_model(work):
    with torch.device(work.device):  # where filling a billion parameters takes no time
        if work.larger:
            return larger.MAKERS[work.larger[0]](**work.larger[1])
        return models.MLP(list(work.widths)) if work.widths else models.GPT(**work.gpt)


def load(work, model):
    with torch.no_grad():
        for name, p in models.parameters(model):
            p.copy_(torch.from_numpy(numpy.load(work.directory / (name + ".npy"))))


class Step:
    """Calling it trains on the next batch and returns the loss. Of several ranks each takes its part
    of every batch. `wrap` distributes the model; `mode` is torch.compile's, without one nothing is compiled."""

    def __init__(self, work, model, wrap=lambda model: model, rank=0, ranks=1, mode="",
                 channels_last=False):
        self.device, self.half = work.device, work.half
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        self.model = wrap(model.to(work.device))  # first: it may put others in the place of the parameters
        groups = models.groups(model, DECAY)
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(B1, B2), eps=EPS, fused=True)
        self.loss_of = torch.compile(models.loss_of, mode=mode) if mode else models.loss_of
        x, y = (torch.from_numpy(numpy.load(work.directory / (name + ".npy"))).to(work.device) for name in "xy")
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        share = work.batch // ranks
        self.batches = [(x[at:at + share], y[at:at + share])
                        for at in range(rank * share, STEPS * work.batch, work.batch)]
        self.count = 0

    def __call__(self):
        x, y = self.batches[self.count % STEPS]
        self.count += 1
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.half):
            loss = self.loss_of(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def finish(self):
        """Waits until the steps so far are done."""
        if self.device != "cpu":
            torch.cuda.synchronize()
