# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard's event files, by their definition and not by what writes them here."""
import struct


def crc32c(data):
    """Castagnoli, one bit at a time; 123456789 gives e3069283."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        head, data = data[:12], data[12:]
        length, crc = struct.unpack("<QI", head)
        assert crc == masked(head[:8]), "the length's checksum"
        payload, tail, data = data[:length], data[length:length + 4], data[length + 4:]
        assert struct.unpack("<I", tail)[0] == masked(payload), "the payload's checksum"
        yield payload


def fields(message):
    """(number, value) of a protobuf message: integers, floats and bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size, form = {1: (8, "<d"), 5: (4, "<f"), 2: (None, None)}[key & 7]
        size = varint() if size is None else size
        part, at = message[at:at + size], at + size
        assert len(part) == size
        yield key >> 3, struct.unpack(form, part)[0] if form else part
