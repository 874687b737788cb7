# SPDX-License-Identifier: Apache-2.0
"""PyTorch twins of larger.lua, the benchmark's own models: ResNet-18 for small images, an LSTM language model, BERT.
Parameters have Orrery's paths as names, as in tests/golden/models.py."""
import torch
from torch import nn
from torch.nn import functional as F

import models


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.ModuleDict({"1": nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                           "2": nn.BatchNorm2d(outputs)})

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (self.shortcut["2"](self.shortcut["1"](x)) if self.shortcut else x))


class ResNet(nn.Module):
    def __init__(self, width, blocks, classes):
        super().__init__()
        inputs = width
        layers = [(1, nn.Conv2d(3, width, 3, padding=1, bias=False)), (2, nn.BatchNorm2d(width))]
        for stage in range(4):
            for block in range(blocks):
                layers.append((len(layers) + 2, Residual(inputs, width << stage, 2 if stage and not block else 1)))
                inputs = width << stage
        layers.append((len(layers) + 4, nn.Linear(inputs, classes)))
        self.layers = models.numbered(layers)

    def forward(self, x):
        conv, norm, *blocks, head = self.layers.values()
        x = F.relu(norm(conv(x)))
        for block in blocks:
            x = block(x)
        return head(x.mean((2, 3)))


class Lstm(nn.Module):
    def __init__(self, vocab, width, hidden, layers):
        super().__init__()
        self.tok = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, hidden, num_layers=layers, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.tok(ids))[0])


class Encoder(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = models.numbered([(1, nn.Linear(dim, 4 * dim)), (3, nn.Linear(4 * dim, dim))])
        self.ln1, self.ln2 = nn.LayerNorm(dim, eps=1e-12), nn.LayerNorm(dim, eps=1e-12)

    def forward(self, x, seen):
        batch, time, dim = x.shape
        q, k, v = (part.view(batch, time, self.heads, dim // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(dim, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = self.ln1(x + self.proj(y.transpose(1, 2).reshape(batch, time, dim)))
        return self.ln2(x + self.mlp["3"](F.gelu(self.mlp["1"](x))))


class Bert(nn.Module):
    """Id 0 is padding, which nobody sees."""

    def __init__(self, vocab, positions, dim, heads, layers):
        super().__init__()
        self.decode = nn.Linear(dim, vocab)
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(positions, dim)
        self.tok.weight = self.decode.weight
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.blocks = models.numbered([(i + 1, Encoder(dim, heads)) for i in range(layers)])
        self.dense, self.ln = nn.Linear(dim, dim), nn.LayerNorm(dim, eps=1e-12)

    def forward(self, ids):
        seen = ids.ne(0)[:, None, None, :]
        x = self.norm(self.tok(ids) + self.pos(torch.arange(ids.shape[-1], device=ids.device)))
        for block in self.blocks.values():
            x = block(x, seen)
        return self.decode(self.ln(F.gelu(self.dense(x))))


MAKERS = {"resnet": ResNet, "lstm": Lstm, "bert": Bert}
