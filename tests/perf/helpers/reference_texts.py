"""Texts of reference files for tests."""

from __future__ import annotations

from perf.verdict.configuration import fingerprint

VARIANT = "mnist_cnn-single-1cpu-fp32-native"
CONFIGURATION = {"batch_size": 64, "workers": 1, "data": "fashion-mnist"}


def occasion(date: str = "2026-11-02", node: str = "n1", launches: str = "[98, 99, 100, 101, 102]") -> str:
    """Return the text of one occasion."""
    return f"""
[[reference.{VARIANT}.throughput.occasion]]
date = {date}
node = "{node}"
stack = "torch 2.14.1"
run = "r1"
recorded_by = "maria"
launches = {launches}
"""


def reference(more: str = "", occasions: str | None = None, expires: str = "2027-05-01") -> str:
    """Return the text of a reference of `VARIANT`'s throughput."""
    return f"""
[reference.{VARIANT}.throughput]
unit = "samples/s"
direction = "higher"
expires = {expires}
fingerprint = "{fingerprint(CONFIGURATION)}"
configuration = {{ batch_size = 64, workers = 1, data = "fashion-mnist" }}
{more}
{occasion() if occasions is None else occasions}"""


HEAD = """\
schema = 1

[system]
gpu = "none"
gpus = 0
cpu = "C"
"""


def whole(*parts: str) -> str:
    """Return the text of a file."""
    return HEAD + "".join(parts or (reference(),))
