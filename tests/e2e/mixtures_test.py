# SPDX-License-Identifier: Apache-2.0
"""nn.switch computes what Mixtral, Qwen2-MoE, Qwen3-MoE and DeepSeek-V3 of Hugging Face's transformers do, and Grok-1 by
its definition: outputs, losses, choices and gradients to 1e-5 (figures by tests/data/make_mixtures.py). Such mixtures
train on several ranks as on one, with its bits where the stack is exact. Arguments: the build tree.
"""
import json
import pathlib
import re
import struct
import sys
import unittest

from close import assert_close
from program import HERE, SOURCE, orrery
from sweep import Sweeping, Training

FILE = SOURCE / "tests/data/files/mixtures.safetensors"


def recorded():
    """(kind, name) of what was computed."""
    data = FILE.read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    names = {tuple(name.split(".", 1)) for name in header if name != "__metadata__"}
    return {(kind, name) for kind, name in names if name in ("y", "loss", "load") or name.startswith("d.")}
SCRIPT = "mixtures_trained.lua"
KINDS = ("mixtral", "qwen", "deepseek")
OVER = 'strategy.expert{ size = 2, over = "batch" }'
EXACT = [
    (2, "strategy.data{}"), (2, OVER), (4, 'strategy.expert{ over = "batch" }'),
    (2, f"{{ {OVER}, strategy.recompute{{}} }}"), (2, f"{{ {OVER}, strategy.recompute{{ mode = 'selective' }} }}"),
    (2, f"{{ {OVER}, strategy.recompute{{}}, strategy.accumulate{{}} }}"),
    (4, f"{{ {OVER}, strategy.data{{}}, strategy.zero{{ stage = 3 }}, strategy.recompute{{}} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, {OVER}, strategy.recompute{{}} }}"),
]
CHUNKS = [("strategy.expert{ CHUNKS }", 2), ("strategy.expert{ CHUNKS }", 4), ("strategy.tensor{ CHUNKS }", 2)]
NEAR = [(2, "strategy.tensor{}"), (2, "strategy.tensor{ sequence = true }"), (2, "strategy.context{}"),
        (4, f"{{ {OVER}, strategy.tensor{{}}, strategy.recompute{{}} }}"), (4, "{ strategy.tensor{ size = 2 }, strategy.expert{} }")]


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


class Trained(Sweeping):
    def lines(self, stack, ranks, kind):
        return self.sweep.lines(Training(stack, ranks, (f"kind={kind}",), SCRIPT))

    def test_has_the_bits_of_one_process(self):
        """The biases of a balance without a loss among them, which every step moves."""
        for kind in KINDS:
            one = self.lines("nil", 1, kind)
            self.assertEqual(len(one), 4)
            for ranks, stack in EXACT:
                with self.subTest(kind=kind, ranks=ranks, stack=stack):
                    self.assertEqual(self.lines(stack, ranks, kind), one)

    def test_chunks_have_the_bits_of_one_process(self):
        for kind in KINDS:
            for stack, ranks in CHUNKS:
                with self.subTest(kind=kind, ranks=ranks, stack=stack):
                    many, one = (stack.replace("CHUNKS", f"size = {n}, chunks = 4") for n in (ranks, 1))
                    self.assertEqual(self.lines(many, ranks, kind), self.lines(one, 1, kind))

    def test_is_near_one_process(self):
        for kind in KINDS:
            one = self.lines("nil", 1, kind)
            for ranks, stack in NEAR:
                with self.subTest(kind=kind, ranks=ranks, stack=stack):
                    assert_close(self, self.lines(stack, ranks, kind), one)

    def test_tensor_ranks_hold_parts_of_experts(self):
        """Half of what is not a norm, a router or the bias of a row layer."""
        script = pathlib.Path(self.folder.name) / SCRIPT
        script.write_text((HERE / SCRIPT).read_text().replace("STACK", "strategy.tensor{}"))
        plan = orrery("plan", "--details", "-n", 2, script)
        self.assertEqual(plan.code, 0, plan.err)
        whole = 2 * (2 * 32 + 4 * 32 + 32) + 32
        cut = 2 * (4 * 32 * 32 + 3 * 32 + 4 * 3 * 32 * 32) + 2 * 96 * 32
        self.assertEqual(int(re.search(r"^ +parameter +(\d+) ", plan.out, re.MULTILINE)[1]), 4 * (whole + cut // 2))

    def test_a_layer_of_experts_is_named_by_its_matrices(self):
        stack = ('strategy.tensor{ column = { "blocks.*.experts.gate", "blocks.*.experts.up" }, '
                 'row = { "blocks.*.experts.down" }, vocab = false }')
        assert_close(self, self.lines(stack, 2, "mixtral"), self.lines("nil", 1, "mixtral"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
