# SPDX-License-Identifier: Apache-2.0
#
# PyTorch twins of models.lua. Parameters have Orrery's paths as names: counts begin at 1, functions
# take a place in a sequence, and a shared table has the first of its paths (head before tok).
import fnmatch

import torch
from torch import nn
from torch.nn import functional as F

UNDECAYED = ("*.bias", "*ln*", "*norm*")


def numbered(modules):
    return nn.ModuleDict({str(place): module for place, module in modules})


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = numbered([(1, nn.Linear(dim, 4 * dim)), (3, nn.Linear(4 * dim, dim))])

    def attention(self, x):
        batch, time, dim = x.shape
        q, k, v = (part.view(batch, time, self.heads, dim // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(dim, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, time, dim))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.mlp["3"](F.gelu(self.mlp["1"](self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocab, positions, dim, heads, layers):
        super().__init__()
        self.head = nn.Linear(dim, vocab, bias=False)
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(positions, dim)
        self.tok.weight = self.head.weight
        self.blocks = numbered([(i + 1, Block(dim, heads)) for i in range(layers)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[-1], device=ids.device))
        for block in self.blocks.values():
            x = block(x)
        return self.head(self.norm(x))


class MLP(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = numbered([(2 * i + 1, nn.Linear(a, b))
                                for i, (a, b) in enumerate(zip(widths, widths[1:]))])

    def forward(self, x):
        *hidden, last = self.layers.values()
        for layer in hidden:
            x = F.relu(layer(x))
        return last(x)


class Convolutional(nn.Module):
    """Layers one after another, numbered from 1; None is relu."""

    def __init__(self, layers):
        super().__init__()
        self.order = layers
        self.layers = numbered([(i + 1, layer) for i, layer in enumerate(layers) if layer])

    def forward(self, x):
        for layer in self.order:
            x = layer(x) if layer else F.relu(x)
        return x


def cnn():
    return Convolutional([
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), None, nn.MaxPool2d(3, stride=2, padding=1),
        nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), None, nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(12, 4)])


def depthwise():
    return Convolutional([
        nn.Conv2d(3, 8, 3), None, nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), None,
        nn.Conv2d(8, 16, 1), nn.GroupNorm(4, 16), None, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 4)])


def parameters(model):
    """[(Orrery's path, parameter)]"""
    return [(name.removeprefix("layers."), p) for name, p in model.named_parameters()]


def initialise(model, generator):
    """Small normal weights; norms near 1; biases that are not 0, so that none is untested. Three dims are experts'
    matrices, inputs before outputs."""
    with torch.no_grad():
        for name, p in parameters(model):
            inputs = p.shape[1] if p.dim() == 3 else p[0].numel()
            deviation = 0.02 if p.dim() == 1 or isinstance(model, GPT) else inputs ** -0.5
            centre = 1.0 if name.endswith("weight") and p.dim() == 1 else 0.0
            p.copy_(torch.randn(p.shape, generator=generator) * deviation + centre)


def groups(model, decay):
    """Parameter groups for an optimizer: the decayed and the others."""
    spared = [any(fnmatch.fnmatch(name, pattern) for pattern in UNDECAYED)
              for name, _ in parameters(model)]
    split = {True: [], False: []}
    for (_, p), spare in zip(parameters(model), spared):
        split[spare].append(p)
    return [{"params": split[False], "weight_decay": decay},
            {"params": split[True], "weight_decay": 0.0}]


def loss_of(model, x, y):
    """Some models give a loss of their own beside the logits."""
    made = model(x)
    logits, more = made if isinstance(made, tuple) else (made, 0)
    return F.cross_entropy(logits.flatten(0, -2), y.flatten().long()) + more
