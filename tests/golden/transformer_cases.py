# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's layers of transformer_cases.lua; layer_cases.py makes their figures.
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

X, MEMORY, STATE, SEQUENCE = (2, 4, 6), ((2, 3, 6), "real"), ((3, 4), "real"), (2, 3, 5)
SIGNS = ((2, 3), "signs")


class Called(nn.Module):
    """A module called in another way."""

    def __init__(self, part, call):
        super().__init__()
        self.part, self.call = part, call

    def forward(self, *inputs):
        return self.call(self.part, *inputs)


def first(part):
    return Called(part, lambda layer, *inputs: layer(*inputs)[0])


def lstm_cell():
    return Called(nn.LSTMCell(5, 4), lambda cell, x, h, c: sum(cell(x, (h, c))))


def attention(heads, call, **options):
    return Called(nn.MultiheadAttention(6, heads, batch_first=True, **options),
                  lambda part, *inputs: call(lambda *q, **more: part(*q, need_weights=False, **more)[0], *inputs))


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def encoder(norm_first):
    layer = nn.TransformerEncoderLayer(6, 2, 8, 0.0, F.gelu if norm_first else F.relu, batch_first=True,
                                       norm_first=norm_first, bias=norm_first)
    return Called(layer, lambda part, x, seen: part(x, src_key_padding_mask=seen < 0))


def decoder(norm_first):
    layer = nn.TransformerDecoderLayer(6, 2, 8, 0.0, F.gelu if norm_first else F.relu, 1e-3, batch_first=True,
                                       norm_first=norm_first)
    return Called(layer, lambda part, x, made, seen: part(x, made, tgt_mask=causal(4), memory_key_padding_mask=seen < 0))


LENGTHS = ((4,), "given", [2, 5, 1, 4])


def in_packs(part, x, lengths, state=None):
    """Results and last states, which PyTorch has as [layers * directions, batch, hidden]."""
    packs = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, last = part(packs, state)
    return nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], last


def packed(layer):
    def call(part, x, lengths):
        y, last = in_packs(part, x, lengths)
        last = last if isinstance(last, tuple) else (last,)
        return y + 0.5 * sum(i * s.sum((0, 2)) for i, s in enumerate(last, 1)).reshape(-1, 1, 1)
    return Called(layer, call)


def packed_from_state():
    def call(part, x, lengths, state):
        y, last = in_packs(part, x, lengths, state.transpose(0, 1).contiguous())
        return y + 0.5 * last.transpose(0, 1).reshape(4, 1, 8)
    return Called(nn.GRU(5, 4, batch_first=True, bidirectional=True), call)


def spectral(layer, **options):
    """In evaluation, with vectors of its own."""
    made = parametrizations.spectral_norm(layer, **options).eval()
    power = made.parametrizations.weight[0]
    for seed, vector in enumerate((power._u, power._v), 1):
        values = torch.tensor([math.sin(2.5 + seed + i * 1.7) for i in range(len(vector))], dtype=torch.float64)
        vector.copy_(values / values.norm())
    return made


CASES = {
    "weight norm": (parametrizations.weight_norm(nn.Linear(6, 5)), (3, 6)),
    "weight norm of columns": (parametrizations.weight_norm(nn.Linear(6, 5), dim=1), (3, 6)),
    "weight norm of conv": (parametrizations.weight_norm(nn.Conv2d(2, 3, 2)), (2, 2, 4, 3)),
    "spectral norm": (spectral(nn.Linear(6, 5)), (3, 6)),
    "spectral norm of conv": (spectral(nn.ConvTranspose2d(2, 3, 2)), (2, 2, 4, 3)),
    "layernorm": (nn.LayerNorm(6), X),
    "layernorm without bias": (nn.LayerNorm(6, bias=False), X),
    "layernorm plain": (nn.LayerNorm(6, eps=0.01, elementwise_affine=False), X),
    "rmsnorm": (nn.RMSNorm(6, eps=1e-5), X),
    "rmsnorm plain": (nn.RMSNorm(6, eps=0.01, elementwise_affine=False), X),
    "bilinear": (nn.Bilinear(4, 3, 5), (2, 3, 4), ((2, 3, 3), "real")),
    "bilinear without bias": (nn.Bilinear(4, 3, 5, bias=False), (6, 4), ((6, 3), "real")),
    "pixel shuffle": (nn.PixelShuffle(2), (2, 8, 3, 2)),
    "upsample of length": (nn.Upsample(scale_factor=3), (2, 3, 4)),
    "upsample nearest": (nn.Upsample(scale_factor=(2, 3)), (2, 3, 4, 2)),
    "upsample linear": (nn.Upsample(scale_factor=4, mode="linear"), (2, 3, 5)),
    "upsample bilinear": (nn.Upsample(scale_factor=(2, 3), mode="bilinear"), (2, 3, 4, 5)),
    "upsample trilinear": (nn.Upsample(scale_factor=2, mode="trilinear"), (1, 2, 3, 1, 4)),
    "rnn": (first(nn.RNN(5, 4, 2, batch_first=True)), SEQUENCE),
    "rnn relu": (first(nn.RNN(5, 4, nonlinearity="relu", batch_first=True, bidirectional=True, bias=False)), SEQUENCE),
    "rnn packed": (packed(nn.RNN(5, 4, 2, batch_first=True)), (4, 5, 5), LENGTHS),
    "gru packed": (packed(nn.GRU(5, 4, 2, batch_first=True, bidirectional=True)), (4, 5, 5), LENGTHS),
    "lstm packed": (packed(nn.LSTM(5, 4, batch_first=True, bidirectional=True, bias=False)), (4, 5, 5), LENGTHS),
    "gru packed from a state": (packed_from_state(), (4, 5, 5), LENGTHS, ((4, 2, 4), "real")),
    "rnn cell": (nn.RNNCell(5, 4), (3, 5), STATE),
    "rnn cell without bias": (nn.RNNCell(5, 4, bias=False, nonlinearity="relu"), (3, 5), STATE),
    "gru cell": (nn.GRUCell(5, 4), (3, 5), STATE),
    "lstm cell": (lstm_cell(), (3, 5), STATE, STATE),
    "attention of one": (attention(2, lambda part, x: part(x, x, x)), X),
    "attention without bias": (attention(3, lambda part, x: part(x, x, x), bias=False), X),
    "attention causal": (attention(2, lambda part, x: part(x, x, x, attn_mask=causal(4))), X),
    "attention of two": (attention(2, lambda part, x, y: part(x, y, y)), X, MEMORY),
    "attention of three": (attention(2, lambda part, x, y, z: part(x, y, z)), X, MEMORY, MEMORY),
    "attention masked": (attention(2, lambda part, x, y, seen: part(x, y, y, key_padding_mask=seen < 0)), X, MEMORY, SIGNS),
    "attention biased": (attention(2, lambda part, x, y, bias: part(x, y, y, attn_mask=bias)), X, MEMORY, ((4, 3), "real")),
    "encoder layer": (encoder(False), X, ((2, 4), "signs")),
    "decoder layer": (decoder(False), X, MEMORY, SIGNS),
    "encoder layer norm first": (encoder(True), X, ((2, 4), "signs")),
    "decoder layer norm first": (decoder(True), X, MEMORY, SIGNS),
}
