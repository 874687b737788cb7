# SPDX-License-Identifier: Apache-2.0
#
# The recurrent models of the golden runs (recurrent.lua has the same): an LSTM of two layers that carries its state
# from batch to batch (truncated backpropagation through time), and a GRU in both directions.
import torch
from torch import nn
from torch.nn import functional as F

VOCAB, WIDTH, HIDDEN, TIME, BATCH, STEPS = 17, 8, 12, 10, 6, 20


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.both = kind == "gru"
        self.tok = nn.Embedding(VOCAB, WIDTH)
        make = nn.GRU if self.both else nn.LSTM
        self.rnn = make(WIDTH, HIDDEN, num_layers=2, batch_first=True, bidirectional=self.both)
        self.head = nn.Linear(HIDDEN * (2 if self.both else 1), VOCAB)

    def forward(self, ids, state):
        y, state = self.rnn(self.tok(ids), state)
        return self.head(y), state


def figures(kind, generator):
    """The model, before training, its text [BATCH, STEPS * TIME + 1], and 20 steps' losses and gradient norms."""
    model = Recurrent(kind)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.4)
    start = [(name, p.detach().clone()) for name, p in model.named_parameters()]
    text = torch.randint(0, VOCAB, (BATCH, STEPS * TIME + 1), generator=generator, dtype=torch.int32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    state, losses, norms = None, [], []
    for step in range(STEPS):
        at = slice(step * TIME, (step + 1) * TIME)
        after = slice(step * TIME + 1, (step + 1) * TIME + 1)
        optimizer.zero_grad(set_to_none=True)
        logits, state = model(text[:, at], state)
        state = None if kind == "gru" else tuple(s.detach() for s in state)
        loss = F.cross_entropy(logits.flatten(0, -2), text[:, after].flatten().long())
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    return start, text, {"loss": losses, "grad_norm": norms}
