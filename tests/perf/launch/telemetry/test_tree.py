from __future__ import annotations

import os
import subprocess
import sys

from perf.launch.telemetry.tree import ProcessTree, parse_pss, pss_of

BUSY = """
import os, subprocess, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
if len(sys.argv) > 1:
    burn(0.3)
else:
    subprocess.run([sys.executable, __file__, "child"], check=True)
    print("ready", flush=True)
    sys.stdin.read()
"""

ROLLUP = "55d0a0000000-7ffd00000000 ---p 00000000 00:00 0 [rollup]\nRss:  9000 kB\nPss:   4242 kB\nPss_Anon: 1 kB\n"


def test_a_child_that_has_ended_is_counted_with_its_parent(tmp_path):
    """Loader workers of an earlier epoch are gone when their CPU seconds are asked for."""
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert "ready\n" == process.stdout.readline()
        tree = ProcessTree(process.pid)
        tree.discover()
        assert [process.pid] == tree.process_ids
        assert tree.cpu_seconds() >= 0.25
    finally:
        process.communicate("")


def test_a_tree_that_is_gone_has_no_reading():
    """Nothing is told of a process that has ended, not 0 seconds."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    tree = ProcessTree(process.pid)
    tree.discover()

    assert ([], None, None) == (tree.process_ids, tree.cpu_seconds(), tree.pss_bytes())


def test_this_process_has_memory():
    """A live process has a share of memory, as far as this kernel tells one."""
    tree = ProcessTree(os.getpid())
    tree.discover()

    assert os.getpid() in tree.process_ids
    assert tree.pss_bytes() is None or tree.pss_bytes() > 2**20


def test_the_proportional_share_is_read():
    """It is the line Pss, not Pss_Anon nor Rss, in kB."""
    assert 4242 * 1024 == parse_pss(ROLLUP)
    assert parse_pss("Rss: 1 kB\n") is None


def test_a_kernel_without_rollup_gives_none(tmp_path):
    """Before Linux 4.14 there is no such file."""
    assert pss_of(1, tmp_path) is None
