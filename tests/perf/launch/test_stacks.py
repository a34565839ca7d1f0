from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.stacks import Frame, parse_dumps, waits_for_others
from perf.machine import REPOSITORY

TIMEOUT = """\
Current thread 0x00007f8763bb86c0 (most recent call first):
  File "/r/perf/training/dumping.py", line 68 in _dump
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Thread 0x00007f87649fdb80 (most recent call first):
  File "/s/torch/distributed/distributed_c10d.py", line 4159 in barrier
  File "/s/torch/distributed/c10d_logger.py", line 81 in wrapper
  File "/r/perf/training/worker.py", line 83 in <module>
"""
FATAL = """\
Fatal Python error: Segmentation fault

Thread 0x00007f3157cfc6c0 (most recent call first):
  File "/usr/lib/python3.13/threading.py", line 992 in run

Current thread 0x00007f315888fc40 [python] (most recent call first):
  File "/r/models/net.py", line 5 in forward

Current thread's C stack trace (most recent call first):
  Binary file "python", at _Py_DumpStack+0x48 [0x5581]
  <truncated rest of calls>

Extension modules: torch._C, numpy (total: 2)
"""


def test_the_main_thread_counts_at_a_time_limit():
    """Threads are listed newest first, so the last is the main thread; the current one is who dumps."""
    (dump,) = parse_dumps(TIMEOUT)
    assert dump.timeout
    assert ["barrier", "wrapper", "<module>"] == [frame.function for frame in dump.frames]


def test_the_thread_that_crashed_counts_at_a_crash():
    """The current thread of a fatal error is taken; C stacks and lists of modules are no frames of it."""
    (dump,) = parse_dumps(FATAL)
    assert (False, (Frame("/r/models/net.py", 5, "forward"),)) == (dump.timeout, dump.frames)


def test_two_dumps_in_one_file_are_kept_apart():
    """A rank that dumped at its limit and crashed later has both."""
    assert [True, False] == [dump.timeout for dump in parse_dumps(TIMEOUT + "\n" + FATAL)]


def test_a_dump_that_was_cut_short_keeps_its_whole_lines():
    """A rank that is killed while it dumps leaves half a line, which is no frame."""
    (dump,) = parse_dumps(TIMEOUT[: TIMEOUT.index(", line 81")])
    assert ["barrier"] == [frame.function for frame in dump.frames]


@pytest.mark.parametrize("nap", ["time.sleep(0.9)", "ctypes.PyDLL(None).usleep(900000)"])
def test_what_this_python_dumps_is_read(nap):
    """The format of the running Python's faulthandler is understood, from the worker's thread and from its signal."""
    code = (
        "import ctypes, sys, time\nfrom perf.training.dumping import StackDump\n"
        f"def nap(): {nap}\nStackDump(sys.stderr, 0.3, 0.1)\nnap()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    (dump,) = parse_dumps(done.stderr)
    assert dump.timeout
    assert ["nap", "<module>"] == [frame.function for frame in dump.frames]


@given(st.text())
def test_any_text_is_parsed_without_error(text):
    """A stack file may hold anything; what is no dump gives none."""
    assert [] == parse_dumps(text.replace("0x", ""))


@pytest.mark.parametrize(
    "frame",
    [
        Frame("/s/torch/distributed/distributed_c10d.py", 1, "all_reduce"),
        Frame("/s/torch/autograd/graph.py", 1, "_engine_run_backward"),
        Frame("/s/torch/autograd/__init__.py", 1, "backward"),
        Frame("/s/torch/nn/parallel/distributed.py", 1, "_sync_buffers"),
        Frame("/s/torch/cuda/__init__.py", 1, "synchronize"),
        Frame("/r/perf/training/loop.py", 1, "train", "    value = loss.item()\n"),
        Frame("/r/perf/training/strategies.py", 1, "f", "    dist.all_reduce(number)\n"),
    ],
)
def test_collectives_backward_and_the_device_are_waits(frame):
    """A rank that stands in one of these waits for the others."""
    assert waits_for_others((frame, Frame("/r/worker.py", 1, "<module>")))


@pytest.mark.parametrize(
    "frames",
    [
        (),
        (
            Frame(
                "/usr/lib/python3.11/selectors.py",
                416,
                "select",
                "    fd_event_list = self._selector.poll(timeout)\n",
            ),
        ),
        (Frame("/s/torch/utils/data/dataloader.py", 1, "_try_get_data"),),
        (
            Frame("/r/hook.py", 1, "hook", "time.sleep(9)"),
            Frame("/s/torch/autograd/graph.py", 1, "_engine_run_backward"),
        ),
    ],
)
def test_a_loader_or_a_hook_inside_backward_waits_for_nobody(frames):
    """Only the innermost frame counts: what hangs below a collective is to blame itself."""
    assert not waits_for_others(frames)


def test_a_frame_reads_as_place_and_source():
    """A frame is shown with its line of source where that is known."""
    assert "/r/a.py:3 in f: x = 1" == str(Frame("/r/a.py", 3, "f", "    x = 1\n"))
    assert "/r/a.py:3 in f" == str(Frame("/r/a.py", 3, "f"))
