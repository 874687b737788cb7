# SPDX-License-Identifier: Apache-2.0
# Takes: torch numpy
"""Checkpoints in the format of torch.distributed.checkpoint: what Orrery saves from ranks under any stack is for torch, to
the bit, what Orrery itself has; and what torch saves again, from one process and from two with shards of DTensor, Orrery
goes on from, with the bits that it has after a checkpoint of its own.

Arguments: the build tree.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/e2e/checkpoint_formats.lua"
FACTS = {"step": 0, "seed": 0, "microbatches": 0, "fast_sums": 0, "extra": ""}


def weights_in(path):
    """Of a safetensors file of f32."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            data = bytearray(content[begin + first:begin + last])
            found[name] = torch.frombuffer(data, dtype=torch.float32).reshape(entry["shape"])
    return found


def loaded(folder, shapes):
    """All of a checkpoint, read as a script of PyTorch does that knows what it wants."""
    state = {name: torch.full(tuple(size), -7, dtype=dtype) for name, (size, dtype) in shapes.items()}
    state["orrery"] = dict(FACTS)
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    return state


def shapes_of(folder):
    known = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    return {name: (each.size, each.properties.dtype) for name, each in known.items() if hasattr(each, "size")}


def save_in_shards(rank, source, folder, meet):
    """As one of two processes that hold rows of what can be halved."""
    warnings.simplefilter("ignore")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "RANK": str(rank), "WORLD_SIZE": "2"}
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    state = loaded(source, shapes_of(source))
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            halves = value.dim() > 0 and value.shape[0] > 1
            state[name] = distribute_tensor(value, mesh, [Shard(0) if halves else Replicate()])
    dcp.save(state, checkpoint_id=folder)
    dist.destroy_process_group()


class Dcp(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def orrery(self, ranks, **arguments):
        done = subprocess.run([BUILD / "orrery", "run", "-n", str(ranks), SCRIPT, *(f"{k}={v}" for k, v in arguments.items())],
                              capture_output=True, text=True, timeout=120, check=False,
                              env=os.environ | {"ORRERY_NO_DIR": "1", "ORRERY_PIN": "none"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_torch_reads_what_ranks_have_saved(self):
        for ranks, stack in ((1, "data"), (2, "zero"), (3, "zero"), (2, "tensor"), (4, "pipeline"), (4, "both")):
            with self.subTest(ranks=ranks, stack=stack):
                at, whole = self.at / f"{ranks}{stack}", self.at / "whole.safetensors"
                self.orrery(ranks, stack=stack, to=at, weights=whole, extra="some text")
                shapes, expected = shapes_of(at), weights_in(whole)
                state = loaded(at, shapes)
                facts = state.pop("orrery")
                self.assertEqual(facts, {"step": 2, "seed": 3, "microbatches": 12, "fast_sums": 0, "extra": "some text"})
                weights = {name: value for name, value in state.items() if not name.startswith("optim.")}
                self.assertEqual(set(expected), set(weights))
                self.assertGreaterEqual(len(state), 3 * len(weights))
                for name, tensor in expected.items():
                    self.assertTrue(torch.equal(weights[name], tensor), name)
                files = list(at.glob("*/*.distcp"))
                self.assertGreaterEqual(len(files), ranks + 1 if stack == "zero" else 2)
                dcp_to_torch_save(at, self.at / "whole.pt")  # without knowing any name
                other = torch.load(self.at / "whole.pt", weights_only=False)
                self.assertEqual(other["orrery"], facts)
                for name, tensor in state.items():
                    self.assertTrue(torch.equal(other[name], tensor), name)

    def test_orrery_goes_on_from_what_torch_saves(self):
        saved, own, one, two = (self.at / name for name in ("saved", "own", "one", "two"))
        self.orrery(2, stack="zero", to=saved)
        self.orrery(2, stack="zero", to=own, format="")
        dcp.save(loaded(saved, shapes_of(saved)), checkpoint_id=one, no_dist=True)
        torch.multiprocessing.spawn(save_in_shards, (saved, two, self.at / "meet"), 2)
        for ranks, stack in ((1, "data"), (2, "tensor"), (3, "zero")):
            with self.subTest(ranks=ranks, stack=stack):
                went_on = {self.orrery(ranks, stack=stack, **{"from": folder}, steps=4) for folder in (own, one, two)}
                self.assertEqual(len(went_on), 1, went_on)

    def test_a_change_by_torch_is_seen(self):
        """So the comparison above can fail."""
        saved, changed = self.at / "saved", self.at / "changed"
        self.orrery(1, to=saved)
        state = loaded(saved, shapes_of(saved))
        state[next(name for name in state if name.endswith(".m"))].flatten()[0] += 1e-3
        dcp.save(state, checkpoint_id=changed, no_dist=True)
        outputs = {self.orrery(1, **{"from": folder}, steps=4) for folder in (saved, changed)}
        self.assertEqual(len(outputs), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
