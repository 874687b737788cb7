# SPDX-License-Identifier: Apache-2.0
"""Reads directories of torch.distributed.checkpoint with Python's own pickle and zipfile, beside both PyTorch and
Orrery."""
import io
import itertools
import json
import pickle
import struct
import zipfile


class Plain:
    """An object of any class, as its attributes."""

    def __setstate__(self, state):
        self.state = state


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if name == "Size":
            return tuple
        if name == "OrderedDict":
            return dict
        if name in ("_get_layout", "_MEM_FORMAT_ENCODING", "_rebuild_tensor_v2"):
            return lambda *given: given
        if module == "torch":
            return f"torch.{name}"
        return type(name, (Plain,), {})

    def persistent_load(self, pid):
        return pid


def archived(content):
    """What one archive of torch.save holds: a value, or the dims and numbers of a tensor of f32."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.testzip() is None
    assert archive.read("archive/version") == b"3\n" and archive.read("archive/byteorder") == b"little"
    value = Unpickler(io.BytesIO(archive.read("archive/data.pkl"))).load()
    if not isinstance(value, tuple):
        return value
    (kind, storage, key, place, count), first, dims, steps, *_ = value
    assert (kind, storage, place, first) == ("storage", "torch.FloatStorage", "cpu", 0)
    numbers = struct.unpack(f"<{count}f", archive.read(f"archive/data/{key}"))
    every = itertools.product(*map(range, dims))
    return dims, [numbers[sum(i * step for i, step in zip(index, steps))] for index in every]


def metadata_of(at):
    return Unpickler(io.BytesIO((at / ".metadata").read_bytes())).load().state


def chunks(at, name):
    return len(metadata_of(at)["state_dict_metadata"][name].state["chunks"])


def read(at):
    """All of a directory, by name: values, and numbers of tensors in rows. Every element must be there once."""
    metadata = metadata_of(at)
    tensors = {name: each.state for name, each in metadata["state_dict_metadata"].items()
               if type(each).__name__ == "TensorStorageMetadata"}
    found = {name: {} for name in tensors}
    for index, info in metadata["storage_data"].items():
        name, place = index.state["fqn"], info.state
        with (at / place["relative_path"]).open("rb") as file:
            file.seek(place["offset"])
            value = archived(file.read(place["length"]))
        if name not in tensors:
            found[name] = value
            continue
        offset, (dims, numbers) = index.state["offset"], value
        chunks = [chunk.state for chunk in tensors[name]["chunks"]]
        assert {"offsets": offset, "sizes": dims} in chunks, (name, offset, dims)
        for element, number in zip(itertools.product(*map(range, dims)), numbers):
            element = tuple(i + first for i, first in zip(element, offset))
            assert element not in found[name], (name, element)
            found[name][element] = number
    for name, tensor in tensors.items():
        found[name] = [found[name].pop(element) for element in itertools.product(*map(range, tensor["size"]))]
    assert set(metadata["planner_data"]) == set(found)
    return found


def numbers_in(path):
    """Of a safetensors file of f32, by name."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:begin])
    entries.pop("__metadata__", None)
    places = {name: [begin + at for at in entry["data_offsets"]] for name, entry in entries.items()}
    return {name: list(struct.unpack(f"<{(last - first) // 4}f", content[first:last]))
            for name, (first, last) in places.items()}
