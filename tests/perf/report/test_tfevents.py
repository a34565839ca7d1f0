from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.report.tfevents import crc32c, events, record


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"123456789", 0xE3069283),
        (b"", 0),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_checksums_are_those_of_the_standard(data, expected):
    """RFC 3720, appendix B.4, and the usual check value."""
    assert expected == crc32c(data)


def read(data):
    """Read TFRecords back, checking both checksums of each."""
    found = []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        body = data[12 : 12 + length]
        for part, stored in ((data[:8], data[8:12]), (body, data[12 + length : 16 + length])):
            crc = crc32c(part)
            assert struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF) == stored
        found.append(body)
        data = data[16 + length :]
    return found


def fields(data):
    """Split a protocol buffer into (field number, value)."""
    found, place = [], 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        part = data[place : place + size]
        place += size
        found.append((key >> 3, struct.unpack({1: "<d", 5: "<f"}[kind], part)[0] if kind in (1, 5) else part))
    return found


SCALARS = st.lists(
    st.tuples(
        st.floats(0, 2e9), st.integers(0, 2**40), st.text(min_size=1), st.floats(allow_nan=False, width=32)
    ),
    max_size=5,
)


@given(SCALARS)
def test_scalars_are_read_back(scalars):
    """Time, step, tag and value of every point, behind a record that has the format's version."""
    first, *rest = [fields(body) for body in read(events(scalars, 7.0))]
    assert [(1, 7.0), (3, b"brain.Event:2")] == first
    found = []
    for (_, moment), (_, step), (_, summary) in rest:
        ((_, value),) = fields(summary)
        (_, tag), (_, number) = fields(value)
        found.append((moment, step, tag.decode(), number))
    assert scalars == found


def test_a_record_is_framed():
    """Length, its checksum, the bytes, their checksum."""
    assert (16 + 3, [b"abc"]) == (len(record(b"abc")), read(record(b"abc")))
