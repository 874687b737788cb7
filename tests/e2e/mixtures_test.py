# SPDX-License-Identifier: Apache-2.0
"""nn.switch computes what Mixtral, Qwen2-MoE, Qwen3-MoE and DeepSeek-V3 of Hugging Face's transformers do, and Grok-1 by
its definition: outputs, losses, choices and gradients to 1e-5 (figures by tests/data/make_mixtures.py). Arguments: the
build tree.
"""
import json
import struct
import sys
import unittest

from program import HERE, SOURCE, orrery

FILE = SOURCE / "tests/data/files/mixtures.safetensors"


def recorded():
    """(kind, name) of what was computed."""
    data = FILE.read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    names = {tuple(name.split(".", 1)) for name in header if name != "__metadata__"}
    return {(kind, name) for kind, name in names if name in ("y", "loss", "load") or name.startswith("d.")}


class Mixtures(unittest.TestCase):
    def follow(self, *arguments, kernels="cpu"):
        done = orrery("run", "--kernels", kernels, HERE / "mixtures.lua", f"file={FILE}", *arguments)
        self.assertEqual(done.code, 0, done.err)
        found = {(kind, name): float(x) for kind, name, x in map(str.split, done.out.splitlines())}
        dropped = {key: found.pop(key) for key in list(found) if key[1] == "dropped"}
        self.assertEqual(set(found), recorded())
        self.assertEqual((len(dropped), set(dropped.values())), (5, {0}))
        for key, far in found.items():
            self.assertLess(far, 1e-5, key)

    def test_without_a_capacity(self):
        for kernels in ("reference", "cpu"):
            with self.subTest(kernels):
                self.follow(kernels=kernels)

    def test_with_room_for_all(self):
        self.follow("capacity=8")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
