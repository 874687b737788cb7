# SPDX-License-Identifier: Apache-2.0
"""eight_bits.lua in NumPy, with ml_dtypes' numbers of eight bits. Writes eight_bits.json: hashes of casts, and three
steps of training for each kind of scale.
"""
import hashlib
import json
import math
import pathlib
import random

import ml_dtypes
import numpy

E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
LARGEST = {E4M3: 448.0, E5M2: 57344.0}
RATE, STEPS, ROWS, KEPT = 2 ** -6, 3, 4, 16


def floats(kind):
    """The bits of f32 that are cast: all bf16, all f16, halfway cases with their neighbours, any at all."""
    numbers = numpy.arange(65536, dtype=numpy.uint32)
    if kind == "bf16":
        return numbers << 16
    if kind == "f16":
        halves = numbers.astype(numpy.uint16).view(numpy.float16)
        same_nan = (numbers & 0x8000) << 16 | 0x7fc00000
        return numpy.where(numpy.isnan(halves), same_nan, halves.astype(numpy.float32).view(numpy.uint32))
    if kind == "any":
        return numpy.frombuffer(random.Random(8).randbytes(4 << 20), numpy.uint32)
    found = []
    for dtype in (E4M3, E5M2):
        finite = numpy.arange(128, dtype=numpy.uint8).view(dtype).astype(numpy.float64)
        finite = finite[numpy.isfinite(finite)]
        ends = numpy.append(finite, 2 * finite[-1] - finite[-2])
        middle = ((ends[1:] + ends[:-1]) / 2).astype(numpy.float32).view(numpy.uint32)
        found += [middle - 1, middle, middle + 1]
    sizes = numpy.concatenate(found)
    return numpy.concatenate([sizes, sizes | 0x80000000])


def hashes():
    found = {}
    for kind in ("bf16", "f16", "halfway", "any"):
        x = floats(kind).view(numpy.float32)
        with numpy.errstate(all="ignore"):
            found[kind] = {"given": hashlib.sha256(x.tobytes()).hexdigest()} | {
                name: hashlib.sha256(x.astype(dtype).astype(numpy.float32).tobytes()).hexdigest()
                for name, dtype in (("f8_e4m3", E4M3), ("f8_e5m2", E5M2))}
    return found


def filled(n, rows, columns):
    return numpy.array([math.sin(0.7 * i + 1.3 * n) for i in range(rows * columns)]).reshape(rows, columns)


def short(x):
    return x.astype(numpy.float32).astype(BF16).astype(numpy.float64)


def scale_of(size, dtype):
    return 2.0 ** numpy.floor(numpy.log2(LARGEST[dtype] / size))


def narrow(x, scale, dtype):
    most = LARGEST[dtype]
    return numpy.clip(x * scale, -most, most).astype(dtype).astype(numpy.float64) / scale


class Layer:
    """y = x w^T in eight bits; `kind` is None for bf16."""

    def __init__(self, weight, kind):
        self.weight, self.kind = weight.astype(numpy.float32).astype(numpy.float64), kind
        self.seen = {E4M3: [], E5M2: []}  # the largest sizes of past steps
        self.now = {E4M3: 0.0, E5M2: 0.0}

    def narrowed(self, x, dtype, rows=True):
        """Of samples."""
        self.now[dtype] = max(self.now[dtype], abs(x).max())
        if self.kind is None:
            return x
        if self.kind == "row":
            return narrow(x, scale_of(abs(x).max(1, keepdims=True), dtype), dtype)
        if self.kind == "delayed":
            return narrow(x, scale_of(max(self.seen[dtype]), dtype) if self.seen[dtype] else 1.0, dtype)
        return narrow(x, scale_of(abs(x).max(), dtype), dtype)

    def matrix(self, summed):
        w = short(self.weight)
        if self.kind is None:
            return w
        size = abs(w).max(summed, keepdims=True) if self.kind == "row" else abs(w).max()
        return narrow(w, scale_of(size, E4M3), E4M3)

    def forward(self, x):
        return short(self.narrowed(x, E4M3) @ self.matrix(1).T)

    def backward(self, x, dy):
        """dx, and dw of one microbatch."""
        dx = short(self.narrowed(dy, E5M2) @ self.matrix(0))
        if self.kind == "row":
            return dx, short(dy.T @ x)
        return dx, short(self.narrowed(dy, E5M2).T @ self.narrowed(x, E4M3))

    def update(self, gradient):
        self.weight = (self.weight - RATE * gradient).astype(numpy.float32).astype(numpy.float64)
        for dtype, size in self.now.items():
            self.seen[dtype] = [size, *self.seen[dtype]][:KEPT]
            self.now[dtype] = 0.0


def trained(kind):
    layers = [Layer(filled(1, 64, 32), kind), Layer(filled(2, 48, 64), kind), Layer(filled(3, 16, 48), None)]
    x, y, losses = filled(20, 16, 32), filled(40, 16, 16), []
    x[8:] *= 5
    x /= 64
    for _ in range(STEPS):
        loss, gradients = 0.0, [0.0] * len(layers)
        for part in (slice(0, 8), slice(8, 16)):
            inputs, h = [], short(x[part])
            for layer in layers:
                inputs.append(h)
                h = layer.forward(h)
                h = numpy.maximum(h, 0) if layer is not layers[-1] else h
            difference = h - y[part].astype(numpy.float32)
            loss += (difference ** 2).sum() / y.size
            dy = short(2 * difference / y.shape[1])
            for n in reversed(range(len(layers))):
                dx, dw = layers[n].backward(inputs[n], dy)
                gradients[n] = short(gradients[n] + dw)
                dy = dx * (inputs[n] > 0)
        for layer, gradient in zip(layers, gradients):
            layer.update(gradient / len(y))
        losses.append(loss)
    return {"losses": losses, "weights": [" ".join(f"{x:.9g}" for x in row) for layer in layers[:2] for row in layer.weight[:ROWS]]}


if __name__ == "__main__":
    steps = {str(kind): trained(kind) for kind in ("tensor", "row", "delayed", None)}
    path = pathlib.Path(__file__).resolve().parent / "eight_bits.json"
    path.write_text(json.dumps({"casts": hashes(), "steps": steps}, indent=1) + "\n")
