# SPDX-License-Identifier: Apache-2.0
"""Reads the tensors of a checkpoint without Orrery: puts the boxes of all files together."""
import array
import itertools
import json
import math


def boxes(path):
    """(name, offset, shape, list of the bytes of each element) of each box of a file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    places = json.loads(header.pop("__metadata__")["DCP_SHARDING_INFO"])
    for name, tensor in header.items():
        begin, end = (8 + size + n for n in tensor["data_offsets"])
        each = (end - begin) // max(1, math.prod(tensor["shape"]))
        yield name, places[name]["saved_offsets"], tensor["shape"], [data[at:at + each] for at in range(begin, end, each or 1)]


def elements(folder):
    """{name: [dtype, bytes of each element]} of a checkpoint directory."""
    manifest = json.loads((folder / "checkpoint.json").read_text())
    whole = {name: tensor["shape"] for name, tensor in manifest["tensors"].items()}
    found = {name: [tensor["dtype"], *[None] * math.prod(whole[name])] for name, tensor in manifest["tensors"].items()}
    for path in manifest["files"]:
        for name, offset, shape, parts in boxes(folder / path):
            for at, index in enumerate(itertools.product(*map(range, shape))):
                place = 0
                for i, first, extent in zip(index, offset, whole[name], strict=True):
                    place = place * extent + first + i
                found[name][1 + place] = parts[at]
    return found


def tensors(folder):
    """{name: floats} of the f32 tensors of a checkpoint directory."""
    nan = array.array("f", [math.nan]).tobytes()
    return {name: array.array("f", b"".join(part or nan for part in parts))
            for name, (dtype, *parts) in elements(folder).items() if dtype == "f32"}
