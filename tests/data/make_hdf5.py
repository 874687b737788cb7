# SPDX-License-Identifier: Apache-2.0
#
# Writes files/hdf5 by h5py. arrays.h5 has 0, 1, 2, ... in every kind of numbers that is read, and in ways in which it
# may lie in a file; texts.h5 texts; other.h5 what is refused, and kept.raw is a file that it refers to. Takes h5py and
# numpy.
import pathlib

import h5py
import numpy

FOLDER = pathlib.Path(__file__).parent / "files/hdf5"
FOLDER.mkdir(exist_ok=True)

with h5py.File(FOLDER / "arrays.h5", "w") as file:
    for kind in ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", "<u8", "<f2", "<f4", ">f4", "<f8"):
        name = kind.replace("<", "").replace(">", "big_")
        file[f"kinds/{name}"] = numpy.arange(6).astype(kind)
    file["kinds/bool"] = numpy.array([False, True, True, False, True, False])
    images = numpy.arange(6 * 3 * 2, dtype=numpy.uint8).reshape(6, 3, 2)
    file["plain"] = images
    file.create_dataset("packed", data=images, chunks=(4, 2, 2), compression="gzip", shuffle=True, fletcher32=True)

TEXTS = ["one", "", "drei \u00e4\u00f6\u00fc", "\u65e5\u672c", "one", "a longer text than all of the others"]
with h5py.File(FOLDER / "texts.h5", "w", libver="earliest") as file:
    file.create_dataset("any", data=TEXTS, dtype=h5py.string_dtype())
    file.create_dataset("packed", data=TEXTS, dtype=h5py.string_dtype(), chunks=(4,), compression="gzip")
    file["fixed"] = numpy.array([text.encode() for text in TEXTS])  # filled up by zeros
    for name, padding in (("ended", h5py.h5t.STR_NULLTERM), ("blanks", h5py.h5t.STR_SPACEPAD)):
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(48), kind.set_strpad(padding)
        made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((6,)))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.array([text.encode() for text in TEXTS], "S48"), kind if name == "ended" else None)
    file.create_dataset("many", data=[str(i % 7) * (i % 5) for i in range(1100)], dtype=h5py.string_dtype())
    file.create_dataset("unwritten", (3,), h5py.string_dtype())
    file["square"] = numpy.array([[b"a", b"b"], [b"c", b"d"]])
    file["numbers"] = numpy.arange(6)

(FOLDER / "kept.raw").write_bytes(bytes(6))
with h5py.File(FOLDER / "other.h5", "w", libver="earliest") as file:
    file["texts"] = ["a", "b"]
    file["complex"] = numpy.zeros(2, numpy.complex64)
    file.create_dataset("lists", (2,), h5py.vlen_dtype(numpy.int32))
    file["one"] = 3.0
    file["none"] = numpy.zeros((0, 3))
    file["long"] = numpy.zeros(3)
    file["short"] = numpy.zeros(2)
    file["linked"] = h5py.ExternalLink("arrays.h5", "plain")
    file.create_dataset("outside", (6,), numpy.uint8, external=[("kept.raw", 0, 6)])
    layout = h5py.VirtualLayout((6, 3, 2), numpy.uint8)
    layout[:] = h5py.VirtualSource("arrays.h5", "plain", (6, 3, 2))
    file.create_virtual_dataset("virtual", layout)
