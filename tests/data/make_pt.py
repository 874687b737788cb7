# SPDX-License-Identifier: Apache-2.0
#
# Writes small files of torch.save and, as safetensors, the tensors that are in them; and files of torch.save that hold
# what must never be run, or is not read. Takes torch and safetensors.
import collections
import os
import pathlib

import safetensors.torch
import torch

FILES = pathlib.Path(__file__).parent / "files" / "pt"


class Command:
    """torch.load would run it."""

    def __reduce__(self):
        return os.system, ("false",)


torch.manual_seed(1)
FILES.mkdir(parents=True, exist_ok=True)
base = torch.randn(4, 6)
tensors = collections.OrderedDict(
    w=base, turned=base.t(), part=base[1:3, ::2], half=torch.randn(3).half(), bf=torch.randn(5).bfloat16(), ids=torch.arange(7),
    i32=torch.arange(3, dtype=torch.int32), u8=torch.tensor([1, 255], dtype=torch.uint8), ok=torch.tensor([True, False]),
    d=torch.randn(2, dtype=torch.float64), scalar=torch.tensor(2.5), expanded=torch.tensor([[1.0], [2.0]]).expand(2, 3),
    parameter=torch.nn.Parameter(torch.ones(2, 2)))
torch.save({"model": tensors, "step": 3, "lr": 1e-3, "name": "x", "groups": [{"w": torch.ones(2, 2)}], "none": None,
            "big": 1 << 70, "size": torch.Size([1, 2])}, FILES / "tensors.pt")
layer = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
torch.save(layer.state_dict(), FILES / "layers.bin")
torch.save(layer[0], FILES / "module.pt")
torch.save({"a": torch.ones(2)}, FILES / "old.pt", _use_new_zipfile_serialization=False)
torch.save({"a": Command(), "w": torch.ones(1)}, FILES / "command.pt")
torch.save(base[0], FILES / "alone.pt")
flat = {f"model.{name}": tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
safetensors.torch.save_file(flat | {"groups.0.w": torch.ones(2, 2)}, FILES / "tensors.safetensors")
safetensors.torch.save_file(layer.state_dict(), FILES / "layers.safetensors")
