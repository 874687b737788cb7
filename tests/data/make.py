# SPDX-License-Identifier: Apache-2.0
#
# Writes the files beside it in `files` with the programs of others, in their own formats: what Orrery's readers
# must read, and what these programs read of it. Takes numpy, ml_dtypes, pandas, Pillow, safetensors and
# zstandard.
import gzip
import io
import json
import pathlib

import ml_dtypes
import numpy
import pandas
import PIL.Image
import safetensors.numpy
import zstandard

FILES = pathlib.Path(__file__).parent / "files"


def npy():
    """0..5 (signed ones -2..3) as [2,3] in every type, bfloat16 by ml_dtypes, big-endian, in Fortran order, with a header of version 3."""
    for descr in ("<f2", "<f4", "<f8", ">f4", "<i2", ">i2", "<i4", ">i8", "<i8", "i1", "u1", "<u2", "<u4", "<u8", "?"):
        first = -2 if "i" in descr else 0
        values = numpy.arange(first, first + 6).reshape(2, 3)
        name = descr.replace("<", "").replace(">", "big_").replace("?", "b1")
        numpy.save(FILES / f"{name}.npy", values.astype(descr))
    numpy.save(FILES / "bf16.npy", numpy.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16))
    numpy.save(FILES / "fortran.npy", numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)))
    numpy.save(FILES / "big_fortran.npy", numpy.asfortranarray(numpy.arange(6).reshape(2, 3).astype(">i2")))
    with open(FILES / "version3.npy", "wb") as file:
        numpy.lib.format.write_array(file, numpy.arange(6, dtype="<f4").reshape(2, 3), version=(3, 0))


def tokens():
    """0, 7, 14, ... as nanoGPT's prepare.py writes them."""
    (numpy.arange(50) * 7).astype(numpy.uint16).tofile(FILES / "tokens.bin")


def idx():
    """Three images of 4 x 5 and their labels, as in MNIST's files."""
    images = (numpy.arange(60) * 37 % 256).astype(numpy.uint8).reshape(3, 4, 5)
    for name, array in (("images", images), ("labels", numpy.array([7, 0, 9], numpy.uint8))):
        head = bytes([0, 0, 8, array.ndim]) + numpy.array(array.shape, ">u4").tobytes()
        (FILES / f"{name}.idx").write_bytes(head + array.tobytes())
        (FILES / f"{name}.idx.gz").write_bytes(gzip.compress(head + array.tobytes(), mtime=0))
    numpy.save(FILES / "images.npy", images.astype(numpy.float32)[:, None] / 255)


def cifar():
    """Two records of each kind; the pixels of record r are (r + 3 * place) mod 256."""
    images = ((numpy.arange(2)[:, None] + 3 * numpy.arange(3072)) % 256).astype(numpy.uint8)
    for name, labels in (("cifar10", [[3], [9]]), ("cifar100", [[19, 99], [0, 42]])):
        numpy.concatenate([numpy.array(labels, numpy.uint8), images], axis=1).tofile(FILES / f"{name}.bin")


def zstd():
    """Two frames with checksums, and before each one that is skipped, as pzstd writes them."""
    pack = zstandard.ZstdCompressor(write_checksum=True).compress
    for name in ("cifar10", "tokens"):
        whole = (FILES / f"{name}.bin").read_bytes()
        frames = [b"\x50\x2a\x4d\x18\x04\0\0\0size" + pack(part) for part in (whole[:40], whole[40:])]
        (FILES / f"{name}.bin.zst").write_bytes(b"".join(frames))


def csv():
    """A table with every awkward text, as pandas writes it, and the numbers that pandas reads of it."""
    table = pandas.DataFrame({
        "a": [1, -2, 3, 4], "b": [0.1, 1e-30, -2.5e10, 7.0], "a name, with a comma": [5, 6, 7, 8],
        "kind": ['say "hi"', "two\nlines", "plain", "comma, inside"], "big": [2**40, 1, 2, 3],
    })
    table.to_csv(FILES / "table.csv", index=False)
    back = pandas.read_csv(FILES / "table.csv")
    numbers = back[["a", "b", "a name, with a comma"]].to_numpy(numpy.float64)
    numpy.save(FILES / "table.npy", numpy.ascontiguousarray(numbers))
    numpy.save(FILES / "table_kinds.npy", pandas.Categorical(back["kind"]).codes.astype(numpy.int32))
    json_lines(table, numbers)


def json_lines(table, numbers):
    """The same table as Python's json writes it, with lists of lists beside, and what pandas reads of these."""
    nested = numpy.random.default_rng(5).normal(size=(len(table), 2, 3))
    rows = [row | {"nested": some, "yes": i % 2 == 0}
            for i, (row, some) in enumerate(zip(table.to_dict("records"), nested.tolist(), strict=True))]
    (FILES / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    back = pandas.read_json(FILES / "table.jsonl", lines=True, precise_float=True)
    assert numpy.array_equal(back[list(table.columns[:3])].to_numpy(numpy.float64), numbers)
    numpy.save(FILES / "table_nested.npy", numpy.array(back["nested"].tolist()))


def weights():
    """Every kind of element of a safetensors file, and all 256 values of the two of eight bits as f32."""
    values = numpy.arange(6).reshape(2, 3)
    kinds = {"bool": "?", "u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4", "u64": "<u8",
             "i64": "<i8", "f16": "<f2", "f32": "<f4", "f64": "<f8", "bf16": ml_dtypes.bfloat16}
    tensors = {name: values.astype(kind) for name, kind in kinds.items()}
    for name, kind in (("f8_e4m3", ml_dtypes.float8_e4m3fn), ("f8_e5m2", ml_dtypes.float8_e5m2)):
        tensors[name] = numpy.arange(256, dtype=numpy.uint8).view(kind)
        tensors[name + ".f32"] = tensors[name].astype("<f4")
    safetensors.numpy.save_file(tensors, FILES / "all.safetensors")


def square(image, size):
    """torchvision's Resize(size) and CenterCrop(size)."""
    shorter = min(image.size)
    image = image.resize(tuple(size * edge // shorter for edge in image.size), PIL.Image.Resampling.BILINEAR)
    left, top = (round((edge - size) / 2.0) for edge in image.size)
    return image.crop((left, top, left + size, top + size))


def images():
    """Every kind of PNG and JPEG that is read, in two classes; what Pillow makes of them, whole and as squares."""
    random = numpy.random.default_rng(1)
    smooth = numpy.add.outer(numpy.arange(14) * 9, numpy.arange(21) * 5)[:, :, None] + numpy.array([0, 40, 20])
    noise = random.integers(0, 256, (17, 11, 3), dtype=numpy.uint8)
    pictures = {
        "cat/grey.png": PIL.Image.fromarray(noise[:, :, 0]),
        "cat/palette.png": PIL.Image.fromarray(noise).quantize(9),
        "cat/rgb.png": PIL.Image.fromarray(noise),
        "cat/rgba.png": PIL.Image.fromarray(random.integers(0, 256, (9, 30, 4), dtype=numpy.uint8)),
        "dog/grey.jpg": PIL.Image.fromarray(smooth[:, :, 0].astype(numpy.uint8)),
        "dog/rgb.JPEG": PIL.Image.fromarray(smooth.astype(numpy.uint8)),
        "dog/small.png": PIL.Image.fromarray(noise[:3, :4]),
    }
    squares = []
    for name, picture in pictures.items():
        path = FILES / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)
        with PIL.Image.open(path) as image:
            rgb = image.convert("RGB")
        numpy.save(FILES / "decoded" / (path.name + ".npy"), numpy.asarray(rgb))
        squares.append(numpy.asarray(square(rgb, 6)).transpose(2, 0, 1))
    numpy.save(FILES / "squares.npy", numpy.stack(squares))


def jpegs():
    """Four colours as programs for print have them, with Adobe's marker for CMYK and for YCCK (the same bytes, of
    which only the marker differs) and without one, and a progressive file; what Pillow makes of them."""
    y, x = numpy.mgrid[0:17, 0:23]
    inks = numpy.stack([x * 11, y * 15, x * y % 256, (x + 2 * y) * 3], -1).astype(numpy.uint8)
    file = io.BytesIO()
    PIL.Image.fromarray(inks, "CMYK").save(file, "JPEG", quality=90)
    cmyk = file.getvalue()
    marker = cmyk.index(b"\xff\xee")
    file = io.BytesIO()
    PIL.Image.fromarray(inks[:, :, :3].copy()).save(file, "JPEG", progressive=True)
    for name, whole in (("cmyk", cmyk), ("ycck", cmyk[:marker + 15] + b"\2" + cmyk[marker + 16:]),
                        ("unmarked", cmyk[:marker] + cmyk[marker + 16:]), ("progressive", file.getvalue())):
        (FILES / "jpegs" / f"{name}.jpg").write_bytes(whole)
        with PIL.Image.open(io.BytesIO(whole)) as image:
            numpy.save(FILES / "decoded" / f"{name}.jpg.npy", numpy.asarray(image.convert("RGB")))


for make in (npy, tokens, idx, cifar, zstd, csv, weights, images, jpegs):
    make()
