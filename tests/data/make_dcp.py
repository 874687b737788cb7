# SPDX-License-Identifier: Apache-2.0
#
# Writes small directories of torch.distributed.checkpoint, of one process (one) and of two (two: shards of FSDP, and of
# DTensor along the second dim), and as safetensors the tensors that are in them; and one that run:load goes on from
# (run). Takes torch and safetensors.
import os
import pathlib
import shutil
import sys

import safetensors.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def one():
    torch.manual_seed(1)
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
             torch.uint8]
    base = torch.randn(4, 6)
    return {"model": {"w": base, "turned": base.t(), "part": base[1:3, ::2], "ok": torch.tensor([True, False]),
                      "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3), "empty": torch.ones(0, 3),
                      "scalar": torch.tensor(2.5)},
            "kinds": [(torch.randn(3) * 9).to(kind) for kind in kinds], "step": 3, "lr": 1e-3, "name": "x"}


def run():
    """The states of tests/e2e/checkpoint_formats.lua: each of its numbers says where it is."""
    state = {"orrery": {"step": 7, "seed": 3, "extra": "by PyTorch"}}
    for name, dims in (("1.weight", (18, 8)), ("1.bias", (18,)), ("3.weight", (8, 18)), ("3.bias", (8,))):
        for number, form in enumerate(("%s", "optim.%s.m", "optim.%s.v")):
            state[form % name] = ((torch.arange(float(torch.Size(dims).numel())) + 1) / 256 + number).reshape(dims)
        state[f"optim.{name}.count"] = torch.tensor(7.0)
    state["3.weight"] = state["3.weight"].t().contiguous().t()  # of other strides
    return state


def two(rank, folder):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "RANK": str(rank), "WORLD_SIZE": "2"}
    dist.init_process_group("gloo", init_method=f"file://{os.path.abspath(folder)}.meet", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 1))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(8, 3)).sum().backward()
    optimizer.step()
    full = torch.arange(42.0).reshape(2, 3, 7)
    dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3,
              "columns": distribute_tensor(full.bfloat16(), mesh, [Shard(2)]),
              "middle": distribute_tensor(full, mesh, [Shard(1)]),
              "all": distribute_tensor(full, mesh, [Replicate()])}, checkpoint_id=folder)
    dist.destroy_process_group()


def flat(value, path=""):
    """The tensors by their places."""
    if isinstance(value, torch.Tensor):
        return {path: value.detach().contiguous().clone()}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else []
    found = {}
    for key, each in items:
        found |= flat(each, f"{path}.{key}" if path else str(key))
    return found


def write():
    """Each with what torch.distributed.checkpoint itself reads of it. Paths are relative: the metadata holds them."""
    shutil.rmtree("run", ignore_errors=True)
    dcp.save(run(), checkpoint_id="run", no_dist=True)
    for name in ("one", "two"):
        shutil.rmtree(name, ignore_errors=True)
        meet, whole = pathlib.Path(f"{name}.meet"), pathlib.Path("whole.pt")
        meet.unlink(missing_ok=True)
        if name == "one":
            dcp.save(one(), checkpoint_id=name)
        else:
            torch.multiprocessing.spawn(two, (name,), 2)
        dcp_to_torch_save(name, whole)
        safetensors.torch.save_file(flat(torch.load(whole, weights_only=False)), f"{name}.safetensors")
        meet.unlink(missing_ok=True)
        whole.unlink()


if __name__ == "__main__":
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "files" / "dcp"
    to.mkdir(parents=True, exist_ok=True)
    os.chdir(to)
    write()
