# SPDX-License-Identifier: Apache-2.0
#
# Writes files/formats, images in WebP, BMP, TIFF and with 16 bits, by Pillow and tifffile, and of each, in
# files/decoded, the RGB that Pillow reads of it. What Pillow reads otherwise than is wanted is said here. Takes imagecodecs,
# numpy, Pillow and tifffile.
import pathlib
import struct
import zlib

import numpy
import PIL.Image
import tifffile

FILES = pathlib.Path(__file__).parent / "files"
FORMATS = FILES / "formats"
RANDOM = numpy.random.default_rng(7)
SMOOTH = (numpy.add.outer(numpy.arange(14) * 9, numpy.arange(21) * 5)[:, :, None] + numpy.array([0, 40, 20])).astype(numpy.uint8)
NOISE = RANDOM.integers(0, 256, (11, 7, 3), numpy.uint8)
CLEAR = RANDOM.integers(0, 256, (9, 10, 4), numpy.uint8)
DEEP = RANDOM.integers(0, 65536, (6, 5, 3), numpy.uint16)


def saved(name, picture, decoded=None, **options):
    """Saves a picture, and the RGB that it is, which is Pillow's unless it is given."""
    path = FORMATS / name
    if picture is not None:
        (PIL.Image.fromarray(picture) if isinstance(picture, numpy.ndarray) else picture).save(path, **options)
    if decoded is None:
        with PIL.Image.open(path) as image:
            decoded = numpy.asarray(image.convert("RGB"))
    numpy.save(FILES / "decoded" / f"{name}.npy", decoded)


def grey(deep):
    """16 bits of grey, cut to the upper 8: Pillow makes white of all above 255."""
    return numpy.repeat((deep >> 8).astype(numpy.uint8)[:, :, None], 3, axis=2)


def deep_pngs():
    saved("grey16.png", DEEP[:, :, 0], grey(DEEP[:, :, 0]))
    (FORMATS / "rgb16.png").write_bytes(png16(DEEP))
    saved("rgb16.png", None, (DEEP >> 8).astype(numpy.uint8))


def png16(pixels):
    """A PNG of RGB with 16 bits, which Pillow reads and does not write."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


def webp():
    saved("lossy.webp", SMOOTH, quality=80)
    saved("lossless.webp", NOISE, lossless=True)
    saved("clear.webp", CLEAR, lossless=True, exact=True)
    frames = [PIL.Image.fromarray(NOISE), PIL.Image.fromarray(255 - NOISE)]
    frames[0].save(FORMATS / "animated.webp", save_all=True, append_images=frames[1:], lossless=True)


def bmp_of_masks(name, pixels, masks, top_down=False):
    """A BMP of 16 or 32 bits; rows begin at the lowest unless they are top down."""
    height, width = pixels.shape
    bits = pixels.dtype.itemsize * 8
    rows = pixels if top_down else pixels[::-1]
    body = b"".join(row.tobytes() + b"\0" * (-len(row.tobytes()) % 4) for row in rows)
    words = struct.pack("<3I", *masks) if masks else b""
    head = struct.pack("<IiiHHIIiiII", 40, width, -height if top_down else height, 1, bits, 3 if masks else 0, len(body), 0, 0, 0, 0)
    first = 14 + len(head) + len(words)
    (FORMATS / name).write_bytes(b"BM" + struct.pack("<IHHI", first + len(body), 0, 0, first) + head + words + body)
    saved(name, None)


def old_bmp():
    """OS/2's header, 4 bits: what Pillow reads and does not write."""
    indices = RANDOM.integers(0, 16, (5, 7))
    palette = RANDOM.integers(0, 256, (16, 3), numpy.uint8)
    padded = numpy.pad(indices, ((0, 0), (0, 1)))[::-1]
    body = b"".join(bytes(padded_row[0::2] * 16 + padded_row[1::2]) for padded_row in padded.astype(numpy.uint8))
    first = 14 + 12 + palette.size
    (FORMATS / "old.bmp").write_bytes(
        b"BM" + struct.pack("<IHHI", first + len(body), 0, 0, first) + struct.pack("<IHHHH", 12, 7, 5, 1, 4) + palette.tobytes() + body)
    saved("old.bmp", None)


def bmp():
    saved("rgb.bmp", NOISE)
    saved("grey.bmp", NOISE[:, :, 0])
    saved("palette.bmp", PIL.Image.fromarray(NOISE).quantize(9))
    saved("two.bmp", PIL.Image.fromarray(NOISE[:, :, 0]).convert("1"))
    saved("clear.bmp", CLEAR)
    every = RANDOM.integers(0, 65536, (9, 11)).astype("<u2")
    bmp_of_masks("555.bmp", every, None)
    bmp_of_masks("565.bmp", every, (0xf800, 0x7e0, 0x1f))
    bmp_of_masks("top-down.bmp", RANDOM.integers(0, 2 ** 32, (4, 3)).astype("<u4"), (0xff000000, 0xff0000, 0xff00), top_down=True)
    old_bmp()


def tiff():
    saved("rgb.tif", NOISE)
    saved("lzw.tif", NOISE, compression="tiff_lzw")
    saved("deflate.tif", CLEAR, compression="tiff_adobe_deflate")
    saved("jpeg.tif", SMOOTH, compression="jpeg", quality=90)
    saved("packed.tif", PIL.Image.fromarray(NOISE).quantize(9), compression="packbits")
    saved("fax.tif", PIL.Image.fromarray(NOISE[:, :, 0]).convert("1"), compression="group4")
    saved("turned.tif", NOISE, tiffinfo={274: 3})
    for name, options in (("tiles.tiff", {"tile": (16, 16), "compression": "zlib"}), ("planes.tiff", {"planarconfig": "separate"}),
                          ("big.tiff", {"bigtiff": True}), ("mac.tiff", {"byteorder": ">"})):
        pixels = numpy.tile(NOISE, (2, 3, 1))
        tifffile.imwrite(FORMATS / name, pixels.transpose(2, 0, 1) if name == "planes.tiff" else pixels, photometric="rgb", **options)
        saved(name, None)
    multiplied = CLEAR.copy()
    multiplied[:, :, :3] = CLEAR[:, :, :3].astype(int) * CLEAR[:, :, 3:] // 255
    tifffile.imwrite(FORMATS / "multiplied.tif", multiplied, photometric="rgb", extrasamples=["assocalpha"])
    saved("multiplied.tif", None)
    tifffile.imwrite(FORMATS / "grey16.tif", DEEP[:, :, 0], photometric="minisblack")
    saved("grey16.tif", None, grey(DEEP[:, :, 0]))
    # libtiff rounds what Pillow cuts off.
    tifffile.imwrite(FORMATS / "rgb16.tif", DEEP, photometric="rgb")
    saved("rgb16.tif", None, ((DEEP.astype(int) + 128) // 257).astype(numpy.uint8))
    inks = PIL.Image.frombytes("CMYK", (10, 9), CLEAR.tobytes())
    paper = 255 - CLEAR.astype(int)  # libtiff cuts off what Pillow rounds
    saved("cmyk.tif", inks, (paper[:, :, 3:] * paper[:, :, :3] // 255).astype(numpy.uint8))
    frames = [PIL.Image.fromarray(NOISE), PIL.Image.fromarray(255 - NOISE)]
    frames[0].save(FORMATS / "pages.tif", save_all=True, append_images=frames[1:])
    saved("sideways.tif", NOISE, tiffinfo={274: 6})
    tifffile.imwrite(FORMATS / "float.tif", DEEP.astype(numpy.float32), photometric="rgb")


FORMATS.mkdir(exist_ok=True)
for make in (deep_pngs, webp, bmp, tiff):
    make()
for name in ("sideways.tif",):  # refused, so that nothing is to be compared
    (FILES / "decoded" / f"{name}.npy").unlink()
