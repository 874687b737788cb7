# SPDX-License-Identifier: Apache-2.0
"""PyTorch twins of larger.lua, the benchmark's own models: ResNet-18 for small images, ResNet-50, blocks of MobileNet and
ConvNeXt, an LSTM language model, BERT, LLaMA and a GPT with experts. Parameters have Orrery's paths as names, as in
tests/golden/models.py."""
import math

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


class MobileNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        layers, inputs = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()], width
        for i, outputs in enumerate((2 * width, 2 * width, 4 * width, 4 * width, 8 * width)):
            each = nn.Conv2d(inputs, inputs, 3, 1 + i % 2, 1, groups=inputs, bias=False)
            layers += [each, nn.BatchNorm2d(inputs), nn.ReLU(),
                       nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
        self.layers = models.numbered(enumerate(layers, 1))

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return x


class NextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, eps=1e-6)
        self.mlp = models.numbered([(1, nn.Linear(width, 4 * width)), (3, nn.Linear(4 * width, width))])

    def forward(self, x):
        first, second = self.mlp.values()
        return x + second(F.gelu(first(self.norm(self.conv(x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, width, blocks, classes):
        super().__init__()
        layers, inputs = [], 3
        for outputs in (width, 2 * width):
            layers.append(nn.Conv2d(inputs, outputs, 2, 2))
            layers += [NextBlock(outputs) for _ in range(blocks)]
            inputs = outputs
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
        self.layers = models.numbered(enumerate(layers, 1))

    forward = MobileNet.forward


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


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = None
        if inputs != outputs:
            self.shortcut = nn.ModuleDict({"1": nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                           "2": nn.BatchNorm2d(outputs)})

    def forward(self, x):
        y = F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))
        return F.relu(self.norm3(self.conv3(y)) + (self.shortcut["2"](self.shortcut["1"](x)) if self.shortcut else x))


class ResNet50(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        inputs, layers = width, [(1, nn.Conv2d(3, width, 7, 2, 3, bias=False)), (2, nn.BatchNorm2d(width))]
        for stage, blocks in enumerate((3, 4, 6, 3)):
            for block in range(blocks):
                layers.append((len(layers) + 3, Bottleneck(inputs, width << stage, 2 if stage and not block else 1)))
                inputs = 4 * width << stage
        layers.append((len(layers) + 5, nn.Linear(inputs, classes)))
        self.layers = models.numbered(layers)

    def forward(self, x):
        conv, norm, *blocks, head = self.layers.values()
        x = F.max_pool2d(F.relu(norm(conv(x))), 3, 2, 1)
        for block in blocks:
            x = block(x)
        return head(x.mean((2, 3)))


def turned(x, cos, sin):
    """Rotary positions, in the convention of halves, of [batch, heads, time, depth]."""
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


class LlamaBlock(nn.Module):
    def __init__(self, dim, heads, kv_heads, hidden):
        super().__init__()
        self.depth = dim // heads
        self.norm1, self.norm2 = nn.RMSNorm(dim, 1e-5), nn.RMSNorm(dim, 1e-5)
        self.q, self.k = nn.Linear(dim, dim, bias=False), nn.Linear(dim, kv_heads * self.depth, bias=False)
        self.v, self.o = nn.Linear(dim, kv_heads * self.depth, bias=False), nn.Linear(dim, dim, bias=False)
        self.gate, self.up = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x, cos, sin):
        h = self.norm1(x)
        q, k, v = (part(h).unflatten(-1, (-1, self.depth)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, vocab, positions, dim, heads, kv_heads, hidden, layers):
        super().__init__()
        half = dim // heads // 2
        angle = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        self.tok = nn.Embedding(vocab, dim)
        self.blocks = models.numbered([(i + 1, LlamaBlock(dim, heads, kv_heads, hidden)) for i in range(layers)])
        self.norm, self.head = nn.RMSNorm(dim, 1e-5), nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x, time = self.tok(ids), ids.shape[-1]
        for block in self.blocks.values():
            x = block(x, self.cos[:time], self.sin[:time])
        return self.head(self.norm(x))


class Switch(nn.Module):
    """nn.switch with its defaults: each place goes to the expert that the router prefers, if that has room left. Tokens
    are sent by their numbers: PyTorch does without products with one-hot rows."""

    def __init__(self, dim, experts, capacity=1.25, balance=0.01):
        super().__init__()
        self.experts, self.capacity, self.balance = experts, capacity, balance
        self.router = nn.ParameterDict({"weight": torch.empty(experts, dim)})
        self.up = nn.Parameter(torch.empty(experts, dim, 4 * dim))
        self.down = nn.Parameter(torch.empty(experts, 4 * dim, dim))

    def route(self, x):
        """(expert, weight) of each place, and the loss that wants equal loads."""
        with torch.autocast(x.device.type, enabled=False):
            p = (x.float() @ self.router["weight"].T).softmax(-1)
        gate, expert = p.max(-1)
        share = F.one_hot(expert, self.experts).float().mean(1)
        return expert, gate, (share * p.mean(1)).sum(-1).mean() * (self.balance * self.experts)

    def forward(self, x):
        batch, places, dim = x.shape
        room = min(places, math.ceil(self.capacity * places / self.experts))
        expert, gate, loss = self.route(x)
        at = F.one_hot(expert, self.experts).cumsum(1).gather(-1, expert[..., None])[..., 0] - 1
        nowhere = self.experts * room
        slot = torch.where(at < room, expert * room + at, nowhere)
        source = torch.full((batch, nowhere + 1), places, device=x.device)
        source = source.scatter(1, slot, torch.arange(places, device=x.device).expand(batch, places))[:, :-1]
        taken = F.pad(x, (0, 0, 0, 1)).gather(1, source[..., None].expand(-1, -1, dim))
        taken = taken.view(batch, self.experts, room, dim).transpose(0, 1).reshape(self.experts, -1, dim)
        made = F.gelu(taken @ self.up, approximate="tanh") @ self.down
        made = made.view(self.experts, batch, room, dim).transpose(0, 1).reshape(batch, nowhere, dim)
        back = F.pad(made, (0, 0, 0, 1)).gather(1, slot[..., None].expand(-1, -1, dim))
        return back * gate[..., None].to(back.dtype), loss


class SwitchGPT(nn.Module):
    """Of logits and the routers' loss."""

    def __init__(self, vocab, positions, dim, heads, layers, experts):
        super().__init__()
        self.head = nn.Linear(dim, vocab, bias=False)
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(positions, dim)
        self.tok.weight = self.head.weight
        self.blocks = models.numbered([(i + 1, models.Block(dim, heads)) for i in range(layers)])
        for block in self.blocks.values():
            block.mlp = Switch(dim, experts)
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x, loss = self.tok(ids) + self.pos(torch.arange(ids.shape[-1], device=ids.device)), 0
        for block in self.blocks.values():
            x = x + block.attention(block.ln1(x))
            y, more = block.mlp(block.ln2(x))
            x, loss = x + y, loss + more
        return self.head(self.norm(x)), loss


MAKERS = {"resnet": ResNet, "resnet50": ResNet50, "mobilenet": MobileNet, "convnext": ConvNeXt, "lstm": Lstm,
          "bert": Bert, "llama": Llama, "switch": SwitchGPT}
