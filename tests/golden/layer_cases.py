# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's layers of layer_cases.lua, and their figures: sums of squares and products with a pattern of the result
# and of the gradients by the inputs and the parameters. Run by itself it writes those that figures.json lacks.
import json
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

import function_cases
import loss_cases
import transformer_cases

# Of batchnorm the evaluation, whose statistics are those of no step: mean 0 and variance 1.
CASES = {
    "conv1d": (nn.Conv1d(3, 4, 3, stride=2, padding=1), (2, 3, 9)),
    "conv2d": (nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), (2, 3, 7, 6)),
    "conv2d point": (nn.Conv2d(5, 3, 1, bias=False, stride=2), (2, 5, 5, 4)),
    "conv2d groups": (nn.Conv2d(4, 6, 3, groups=2, padding=1), (2, 4, 5, 5)),
    "conv2d depthwise": (nn.Conv2d(5, 5, 3, groups=5, padding=1, stride=2), (2, 5, 6, 7)),
    "conv2d same": (nn.Conv2d(2, 3, (4, 3), padding="same", dilation=(1, 2)), (2, 2, 5, 6)),
    "conv3d": (nn.Conv3d(2, 3, 2, padding=1, stride=(1, 2, 1)), (2, 2, 3, 4, 3)),
    "conv3d groups": (nn.Conv3d(4, 6, 2, groups=2), (2, 4, 3, 4, 3)),
    "conv3d depthwise": (nn.Conv3d(3, 3, 2, groups=3, bias=False), (2, 3, 3, 4, 3)),
    "conv_transpose1d": (nn.ConvTranspose1d(3, 2, 4, stride=3, padding=1, output_padding=2), (2, 3, 4)),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=(2, 1), groups=2),
                         (2, 4, 3, 4)),
    "conv_transpose3d": (nn.ConvTranspose3d(2, 2, 2, stride=2, bias=False), (1, 2, 2, 3, 2)),
    "conv_transpose3d groups": (nn.ConvTranspose3d(4, 4, 2, groups=2, stride=(1, 2, 1)), (2, 4, 2, 3, 2)),
    "unfold": (nn.Unfold((3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1)), (2, 3, 6, 5)),
    "unfold square": (nn.Unfold(2), (2, 3, 4, 3)),
    "fold": (nn.Fold((6, 5), (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1)), (2, 18, 9)),
    "fold square": (nn.Fold(4, 2, stride=2), (2, 8, 4)),
    "convolution": (lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 0), dilation=(1, 2)), (2, 3, 7, 6),
                    ((4, 3, 3, 2), "real")),
    "convolution of length": (lambda x, w, b: F.conv1d(x, w, b, groups=2, padding="same"), (2, 4, 9), ((6, 2, 3), "real"),
                              ((6,), "real")),
    "convolution by channel": (lambda x, w: F.conv3d(x, w, groups=3), (2, 3, 3, 4, 3), ((3, 1, 2, 2, 2), "real")),
    "max_pool1d": (nn.MaxPool1d(3, stride=1, dilation=2), (2, 3, 9)),
    "max_pool2d": (nn.MaxPool2d(3, stride=2, padding=1), (2, 3, 7, 6)),
    "max_pool2d ceil": (nn.MaxPool2d((3, 2), stride=(2, 3), padding=1, ceil_mode=True), (2, 3, 8, 6)),
    "max_pool2d no more": (nn.MaxPool2d(2, stride=3, padding=1, ceil_mode=True), (1, 2, 6, 5)),
    "max_pool3d": (nn.MaxPool3d(2), (1, 2, 4, 4, 6)),
    "avg_pool1d": (nn.AvgPool1d(2), (2, 3, 8)),
    "avg_pool2d": (nn.AvgPool2d(3, stride=2, padding=1), (2, 3, 7, 6)),
    "avg_pool2d counted": (nn.AvgPool2d((3, 2), stride=1, padding=1, count_include_pad=False), (2, 3, 5, 4)),
    "avg_pool3d": (nn.AvgPool3d(2, stride=1), (1, 2, 3, 3, 3)),
    "adaptive_avg_pool1d": (nn.AdaptiveAvgPool1d(3), (2, 3, 7)),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d((1, 3)), (2, 3, 5, 6)),
    "adaptive_avg_pool3d": (nn.AdaptiveAvgPool3d(2), (1, 2, 5, 4, 3)),
    "batchnorm": (nn.BatchNorm2d(3).eval(), (4, 3, 3, 2)),
    "groupnorm": (nn.GroupNorm(2, 4), (2, 4, 3, 2)),
    "instancenorm": (nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 5)),
}


def numbers(dims, seed, scale=1.0, shift=0.0):
    count = math.prod(dims)
    values = [math.sin(1 + seed + i * 1.7) * scale + shift for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).float().reshape(dims)


def measures(values, pattern):
    values, pattern = values.detach().double(), pattern.double()
    return [(values * values).sum().item(), (values * pattern).sum().item()]


def further(i, dims, kind, classes=0):
    """The i-th of a case's further inputs, whose kinds are those of layers.lua."""
    if kind in ("real", "unit"):
        return numbers(dims, 20 + i, *((2, 0.25) if kind == "real" else (0.45, 0.5))).requires_grad_()
    if kind == "given":
        return torch.tensor(classes)
    if kind == "weights":
        return numbers(dims, 20 + i, 0.45, 0.5)
    at = torch.arange(math.prod(dims)).reshape(dims)
    return torch.where(at % 3 == 0, -1.0, 1.0) if kind == "signs" else (at * 7 + 3) % classes


def figures_of(layer, dims, *more):
    states = [p for _, p in sorted(layer.named_parameters())] if isinstance(layer, nn.Module) else []
    with torch.no_grad():
        for i, state in enumerate(states, 1):
            state.copy_(numbers(state.shape, 10 * i, 0.5))
    inputs = [numbers(dims, 0, 2, 0.25).requires_grad_()] + [further(i, *each) for i, each in enumerate(more, 1)]
    y = layer(*inputs)
    pattern = numbers(y.shape, 5)
    (y * pattern).sum().backward()
    found = measures(y, pattern)
    for i, each in enumerate([x for x in inputs if x.requires_grad] + states):
        found += measures(each.grad, numbers(each.shape, 6 + i))
    return found


def figures(known=()):
    every = {**CASES, **loss_cases.CASES, **function_cases.CASES, **transformer_cases.CASES}
    return {name: figures_of(*case) for name, case in every.items() if name not in known}


def main():
    torch.set_num_threads(1)
    path = pathlib.Path(__file__).with_name("figures.json")
    every = json.loads(path.read_text())
    every["layers"].update(figures(every["layers"]))
    path.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
