"""Nsight Systems: found or not, and a capture that holds something or not. A script stands in for nsys."""

from __future__ import annotations

import pytest

from perf.launch.failure import LaunchFailed, NotAvailable
from perf.launch.nsys import check_capture, has_range, refuse_without_nsys

TABLE = """Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range
50.0,100,10,10.0,10.0,10,10,0.0,PushPop,:step
25.0,50,10,5.0,5.0,5,5,0.0,PushPop,:forward
"""


@pytest.fixture
def nsys(tmp_path, monkeypatch):
    """Put an nsys on PATH that says what the test wants."""

    def make(says: str, status: int = 0):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        script = folder / "nsys"
        script.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {status}\n", encoding="utf-8")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return make


@pytest.fixture
def capture(tmp_path):
    """A file that stands for a capture."""
    path = tmp_path / "trace.nsys-rep"
    path.write_bytes(b"capture")
    return path


def test_without_nsys_the_reason_is_given(monkeypatch, tmp_path):
    """Not available is no failure."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotAvailable, match="not on PATH"):
        refuse_without_nsys()


def test_a_capture_with_steps_is_kept(nsys, capture):
    """Its table of ranges has a step."""
    nsys(TABLE)
    refuse_without_nsys()
    check_capture(str(capture))


@pytest.mark.parametrize(
    ("says", "status"),
    [("SKIPPED: trace.sqlite does not contain NV Tools Extension data.", 0), (TABLE, 1), ("", 0)],
)
def test_a_capture_without_steps_is_an_error(nsys, capture, says, status):
    """nsys itself is content with nothing."""
    nsys(says, status)
    with pytest.raises(LaunchFailed, match="it is empty"):
        check_capture(str(capture))


@pytest.mark.parametrize("there", [True, False])
def test_a_missing_or_empty_file_is_an_error(tmp_path, there):
    """Where nsys wrote nothing there is nothing to ask it about."""
    path = tmp_path / "trace.nsys-rep"
    if there:
        path.touch()
    with pytest.raises(LaunchFailed, match="missing or empty"):
        check_capture(str(path))


def test_a_range_is_matched_whole():
    """A range that only begins so is another one."""
    assert not has_range("1.0,PushPop,:step 12 of something")
    assert has_range('1.0,PushPop,"step"')
