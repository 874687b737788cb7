# SPDX-License-Identifier: Apache-2.0
"""Reads the f32 tensors of a checkpoint without Orrery: puts the boxes of all files together."""
import array
import itertools
import json
import math


def boxes(path):
    """(name, offset, shape, floats) of each f32 box of a file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    places = json.loads(header.pop("__metadata__")["DCP_SHARDING_INFO"])
    for name, tensor in header.items():
        if tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            floats = array.array("f", data[8 + size + begin:8 + size + end])
            yield name, places[name]["saved_offsets"], tensor["shape"], floats


def tensors(folder):
    """{name: floats} of a checkpoint directory."""
    manifest = json.loads((folder / "checkpoint.json").read_text())
    whole = {name: tensor["shape"] for name, tensor in manifest["tensors"].items() if tensor["dtype"] == "f32"}
    found = {name: array.array("f", [math.nan]) * math.prod(shape) for name, shape in whole.items()}
    for path in manifest["files"]:
        for name, offset, shape, floats in boxes(folder / path):
            for at, index in enumerate(itertools.product(*map(range, shape))):
                place = 0
                for i, first, extent in zip(index, offset, whole[name], strict=True):
                    place = place * extent + first + i
                found[name][place] = floats[at]
    return found
