"""TensorBoard's event files: scalars as TFRecords of protocol buffers, written here in full. Pure.

The format is small (a record is length, checksum, bytes, checksum; an event has four fields), while the package
``tensorboard`` brings gRPC, NumPy, protobuf and a web server into the driver: some lines here are the lighter load.
Sources: TensorFlow's ``record_writer.h`` and TensorBoard's ``event.proto`` and ``summary.proto``; CRC-32C
from RFC 3720.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["crc32c", "events", "record"]

_POLYNOMIAL = 0x82F63B78
"""Castagnoli's polynomial, bits reversed (RFC 3720, appendix B.4)."""

_MASK = 0xA282EAD8
"""Added to a rotated checksum, so that the checksum of bytes that hold checksums is no weak one (record_writer.h)."""


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """Return a TFRecord: length and data, each with its masked checksum."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def events(scalars: Iterable[tuple[float, int, str, float]], started: float) -> bytes:
    """Return a whole event file.

    Parameters
    ----------
    scalars
        Unix time in seconds, step, tag and value of each point; steps from 0 up. A value is stored as a 32-bit float.
    started
        Unix time in seconds of the file's first record, which says the version of the format.
    """
    parts = [record(_double(1, started) + _bytes(3, b"brain.Event:2"))]
    for moment, step, tag, value in scalars:
        summary = _bytes(1, _bytes(1, tag.encode()) + _float(2, value))
        parts.append(record(_double(1, moment) + _varint(2 << 3) + _varint(step) + _bytes(5, summary)))
    return b"".join(parts)


def _masked(data: bytes) -> bytes:
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + _MASK) & 0xFFFFFFFF)


def _varint(value: int) -> bytes:
    """Encode an unsigned number, seven bits a byte."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)
