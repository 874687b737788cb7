# SPDX-License-Identifier: Apache-2.0
# Takes: torch safetensors numpy
"""PyTorch reads Orrery's checkpoints: safetensors.torch each file, and torch.distributed.checkpoint the whole, whole
and in shards of its own. All must be the bits that Orrery loads itself.

Arguments: the build tree. It needs the packages torch and safetensors, and is skipped without them.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import safetensors.torch
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import HuggingFaceStorageReader
    MISSING = ""
except ImportError as missing:
    MISSING = f"{missing}; pip install torch safetensors"

BUILD = pathlib.Path(sys.argv[1]).resolve()
SCRIPT = pathlib.Path(__file__).resolve().parent / "checkpoints.lua"


@unittest.skipIf(MISSING, MISSING)
class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name) / "checkpoint"

    def run_script(self, ranks, *words):
        done = subprocess.run([BUILD / "orrery", "run", "-n", str(ranks), SCRIPT, f"at={self.at}", *words],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def saved(self, ranks, stack):
        """The folder of files, and what Orrery itself reads of it on one rank: tensors by name."""
        self.run_script(ranks, f"stack={stack}")
        whole = self.at.parent / "whole.safetensors"
        self.run_script(1, "load=true", f"weights={whole}")
        [folder] = [path for path in self.at.iterdir() if path.is_dir()]
        return folder, safetensors.torch.load_file(whole)

    def test_both_readers(self):
        for ranks, stack in ((1, "data"), (2, "data"), (3, "zero"), (2, "tensor"), (4, "both")):
            with self.subTest(ranks=ranks, stack=stack):
                folder, expected = self.saved(ranks, stack)
                files = sorted(folder.glob("*.safetensors"))  # beside them the mark of whose folder it is
                self.assertGreaterEqual(len(files), ranks if stack == "zero" else 1)
                bytes_of = [sum(t.nbytes for t in safetensors.torch.load_file(f).values()) for f in files]
                for file in files:
                    header = safetensors.safe_open(str(file), framework="pt").metadata()
                    self.assertEqual(header["DCP_VERSION"], "1.0")
                print(f"{stack} on {ranks} ranks: files of {bytes_of} bytes", file=sys.stderr)
                self.read_whole(folder, expected)
                self.read_rows(folder, expected)
                for file in self.at.rglob("*"):
                    file.is_file() and file.unlink()
                for path in sorted(self.at.rglob("*"), reverse=True):
                    path.rmdir()
                self.at.rmdir()

    def read_whole(self, folder, expected):
        reader = HuggingFaceStorageReader(str(folder))
        known = reader.read_metadata().state_dict_metadata
        self.assertEqual({name: tuple(known[name].size) for name in expected},
                         {name: tuple(tensor.shape) for name, tensor in expected.items()})
        self.assertTrue(any(name.startswith("optim.") for name in known))
        state = {name: torch.full_like(tensor, -7) for name, tensor in expected.items()}
        dcp.load(state, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
        for name, tensor in expected.items():
            self.assertTrue(torch.equal(state[name], tensor), name)

    def read_rows(self, folder, expected):
        """As a rank that holds the last rows of each tensor: a ShardedTensor of another cut than the files'."""
        from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor
        import torch.distributed as dist
        if not dist.is_initialized():
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        name = max(expected, key=lambda n: expected[n].numel())
        full = expected[name]
        cut = full.shape[0] * 2 // 3
        shards = [Shard.from_tensor_and_offsets(torch.full_like(full[a:b], -7), [a] + [0] * (full.dim() - 1), 0)
                  for a, b in ((0, cut), (cut, full.shape[0]))]
        state = {name: ShardedTensor._init_from_local_shards(shards, full.shape)}
        dcp.load(state, storage_reader=HuggingFaceStorageReader(str(folder)))
        joined = torch.cat([shard.tensor for shard in state[name].local_shards()])
        self.assertTrue(torch.equal(joined, full), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
