# SPDX-License-Identifier: Apache-2.0
#
# Writes files/hdf5 by h5py. arrays.h5 has 0, 1, 2, ... in every kind of numbers that is read, and in ways in which it
# may lie in a file; other.h5 what is refused, and kept.raw is a file that it refers to. Takes h5py and numpy.
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
