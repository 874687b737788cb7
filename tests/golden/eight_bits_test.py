# SPDX-License-Identifier: Apache-2.0
"""Casts to numbers of eight bits and back have the bits of ml_dtypes, and layers that multiply in them train as a model
of them in NumPy does.

Arguments: the build tree. The figures come from eight_bits.py.
"""
import array
import hashlib
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
WANTED = json.loads((HERE / "eight_bits.json").read_text())
KERNELS = ("reference", "cpu")
FORMATS = {"f8_e4m3": (3, 7, 448), "f8_e5m2": (2, 15, 57344)}  # bits of the fraction, bias, the largest


def run(kernels, *words):
    done = subprocess.run([BUILD / "orrery", "run", "--no-dir", "--kernels", kernels, HERE / "eight_bits.lua", *words],
                          capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout.splitlines()


def halves():
    for bits in range(65536):
        yield struct.unpack("<e", struct.pack("<H", bits))[0], bits


def bits_of(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def finite(name):
    """The numbers from 0 on."""
    fraction, bias, largest = FORMATS[name]
    sizes = [math.ldexp(steps, 1 - bias - fraction) if exponent == 0 else
             math.ldexp(steps + (1 << fraction), exponent - bias - fraction)
             for exponent in range(1 << (7 - fraction)) for steps in range(1 << fraction)]
    return [x for x in sizes if x <= largest]


def floats(kind):
    """The bits of f32 that are cast, as in eight_bits.py."""
    if kind == "bf16":
        return array.array("I", (bits << 16 for bits in range(65536)))
    if kind == "f16":
        return array.array("I", (bits_of(x) if x == x else (bits & 0x8000) << 16 | 0x7fc00000 for x, bits in halves()))
    if kind == "any":
        return array.array("I", random.Random(8).randbytes(4 << 20))
    sizes = []
    for name in FORMATS:
        ends = finite(name)
        ends.append(2 * ends[-1] - ends[-2])
        middle = [bits_of((x + y) / 2) for x, y in zip(ends, ends[1:])]
        sizes += [bits + step for step in (-1, 0, 1) for bits in middle]
    return array.array("I", sizes + [bits | 0x80000000 for bits in sizes])


def npy(elements):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(elements)},), }}"
    header = text + " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + elements.tobytes()


class EightBits(unittest.TestCase):
    def test_casts_are_those_of_ml_dtypes(self):
        with tempfile.TemporaryDirectory() as folder:
            given, found = (pathlib.Path(folder) / name for name in ("given.npy", "found.npy"))
            for kind, wanted in WANTED["casts"].items():
                elements = floats(kind)
                self.assertEqual(hashlib.sha256(elements.tobytes()).hexdigest(), wanted["given"], kind)
                given.write_bytes(npy(elements))
                for kernels in KERNELS:
                    for name in FORMATS:
                        with self.subTest(kind=kind, kernels=kernels, name=name):
                            run(kernels, f"cast={name}", f"from={given}", f"to={found}")
                            data = found.read_bytes()[-4 * len(elements):]
                            self.assertEqual(hashlib.sha256(data).hexdigest(), wanted[name])

    def trained(self, kernels, *words):
        lines = run(kernels, *words)
        return [float(x) for x in lines[:3]], [float(x) for line in lines[3:] for x in line.split()]

    def test_layers_train_as_in_numpy(self):
        """To 1e-6, where weights of other scales, and of bf16, are thousands of times as far away."""
        wanted = {kind: (steps["losses"], [float(x) for line in steps["weights"] for x in line.split()])
                  for kind, steps in WANTED["steps"].items()}
        for kernels in KERNELS:
            for kind, (losses, weights) in wanted.items():
                with self.subTest(kernels=kernels, kind=kind):
                    words = ("eight=false",) if kind == "None" else (f"scale={kind}",)
                    found, values = self.trained(kernels, *words)
                    for x, y in zip(found, losses, strict=True):
                        self.assertLess(abs(x - y), 1e-6 * y)
                    self.assertLess(math.dist(values, weights), 1e-6)
                    for other, (_, others) in wanted.items():
                        if other != kind:
                            self.assertGreater(math.dist(values, others), 1e-3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
