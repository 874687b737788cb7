# SPDX-License-Identifier: Apache-2.0
"""Layers of random_layers.py that PyTorch has not as one function, or not as Orrery defines them."""
import math

import torch
import torch.nn.functional as F


class States(dict):
    """Tensors that live from step to step: changes count from the next one on, and in training only."""

    def __init__(self, start):
        super().__init__(start)
        self.later, self.training, self.microbatches = {}, True, 1

    def update(self, name, value):
        self.later[name] = value.detach()

    def step(self):
        super().update(self.later if self.training else {})
        self.later = {}


def batchnorm(x, weight, bias, name, sync, states, eps=0.1, momentum=0.3):
    dims = [0, *range(2, x.dim())]
    shape = [1, -1] + [1] * (x.dim() - 2)
    means, variances = f"{name}_running_mean", f"{name}_running_var"
    if states.training:
        parts = x.split(len(x) if sync else math.ceil(len(x) / states.microbatches))
        mean = [p.mean(dims, keepdim=True) for p in parts]
        var = [p.var(dims, correction=0, keepdim=True) for p in parts]
        y = torch.cat([(p - m) * (v + eps) ** -0.5 for p, m, v in zip(parts, mean, var)])
        counts = [p.numel() / p.shape[1] for p in parts]
        shares = [len(p) / len(x) for p in parts]
        new = sum(m * s for m, s in zip(mean, shares)).reshape(-1)
        states.update(means, states[means] * (1 - momentum) + new * momentum)
        new = sum(v * s * n / max(n - 1, 1) for v, s, n in zip(var, shares, counts)).reshape(-1)
        states.update(variances, states[variances] * (1 - momentum) + new * momentum)
    else:
        y = (x - states[means].reshape(shape)) * (states[variances].reshape(shape) + eps) ** -0.5
    return y if weight is None else y * weight.reshape(shape) + bias.reshape(shape)


def microbatch_mean(x, states):
    return torch.cat([part.mean(0, keepdim=True).expand_as(part) for part in x.split(math.ceil(len(x) / states.microbatches))])


def rotary(x, heads, interleaved):
    batch, time, width = x.shape
    half = width // heads // 2
    angle = torch.arange(time).reshape(time, 1) * 10000.0 ** (-torch.arange(half).double() / half)
    x = x.reshape(batch, time, heads, *((half, 2) if interleaved else (2, half)))
    pairs = x if interleaved else x.transpose(-1, -2)
    turned = torch.view_as_complex(pairs.double().contiguous()) * torch.polar(torch.ones_like(angle), angle).reshape(1, time, 1, half)
    turned = torch.view_as_real(turned)
    return (turned if interleaved else turned.transpose(-1, -2)).reshape(batch, time, width).to(x.dtype)


def attention(q, k, v, heads, kv_heads=None, causal=False, window=None, scale=None, offset=None, mask=None, bias=None):
    kv_heads, (batch, time, width), places = kv_heads or heads, q.shape, k.shape[1]
    d = width // heads
    q = q.reshape(batch, time, heads, d).transpose(1, 2)
    k, v = (t.reshape(batch, places, kv_heads, d).transpose(1, 2).repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    at = torch.arange(time).reshape(-1, 1) + (places - time if offset is None else offset)
    seen = torch.ones(time, places, dtype=torch.bool)
    if causal:
        seen = seen & (torch.arange(places) <= at)
    if window:
        seen = seen & ((torch.arange(places) - at).abs() < window)
    seen = (seen if mask is None else seen & mask).expand(batch, heads, time, places)
    scores = q @ k.mT * (scale or d ** -0.5)
    scores = scores if bias is None else scores + bias
    some = seen.any(-1, keepdim=True)
    weights = torch.where(seen, scores, torch.where(some, -math.inf, 0.0)).softmax(-1)
    return torch.where(some, weights @ v, 0.0).transpose(1, 2).reshape(batch, time, width)


def recurrent(kind, x, parameters, hidden, layers, bias, both, state=None):
    """The outputs, and the last state [batch, layers * directions, hidden] (h of an lstm)."""
    layer = (torch.nn.LSTM if kind == "lstm" else torch.nn.GRU)(
        x.shape[-1], hidden, layers, bias=bias, batch_first=True, bidirectional=both).to(x.dtype)
    state = state and [s.transpose(0, 1).contiguous() for s in state]
    state = state and (tuple(state) if kind == "lstm" else state[0])
    y, last = torch.func.functional_call(layer, parameters, (x, state))
    return y, (last[0] if kind == "lstm" else last).transpose(0, 1)


def scan(x, w):
    s, made = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        s = (s @ w + x[:, t] * (t + 1)).tanh()
        made.append(s + x[:, t])
    return torch.stack(made, 1)


def bag(ids, table, mode, padding):
    rows = []
    for bag in ids:
        kept = bag if padding is None else bag[bag != padding]
        found = table[kept]
        if not len(kept):
            rows.append(table[0] * 0)
        else:
            rows.append(found.amax(0) if mode == "max" else found.mean(0) if mode == "mean" else found.sum(0))
    return torch.stack(rows)


def switch(x, router, up, down, top, capacity, group):
    """nn.switch with tanh, token by token; balance 0.1, z 0.05."""
    batch, time, _ = x.shape
    experts = len(router)
    room = min(group, max(1, math.ceil(capacity * top * group / experts)))
    y, losses, squares = torch.zeros_like(x), [], []
    for b in range(batch):
        for first in range(0, time, group):
            tokens = x[b, first:first + group]
            logits = tokens @ router.T
            p = logits.softmax(-1)
            order = p.sort(descending=True, stable=True).indices[:, :top]
            used = [0] * experts
            for choice in range(top):
                for t in range(group):
                    e = order[t, choice].item()
                    used[e] += 1
                    if used[e] <= room:
                        gate = p[t, e] / p[t, order[t]].sum() if top == 2 else p[t, e]
                        made = (tokens[t] @ up[e]).tanh() @ down[e]
                        y = y.index_put((torch.tensor(b), torch.tensor(first + t)), gate * made, accumulate=True)
            share = F.one_hot(order[:, 0], experts).to(x.dtype).mean(0)
            losses.append((share * p.mean(0)).sum())
            squares.append(torch.logsumexp(logits, -1) ** 2)
    return y, torch.stack(losses).mean() * 0.1 * experts + torch.cat(squares).mean() * 0.05


def cross_entropy(logits, labels, weights):
    rows, labels = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    weights = (labels >= 0).double() * (1 if weights is None else weights.reshape(-1))
    return (F.cross_entropy(rows, labels, ignore_index=-1, reduction="none") * weights).sum() / weights.sum()
