from __future__ import annotations

import subprocess
import sys

import pytest

from perf.launch.lock import SHARER, NodeLock
from perf.launch.sharing import shared_node
from perf.machine import REPOSITORY

SHARE = """
import sys
from pathlib import Path
from perf.launch.sharing import shared_node
with shared_node("other-run", print, Path(sys.argv[1])):
    print("shared", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path):
    """Return where the locks lie."""
    return tmp_path / "stackproof"


@pytest.fixture
def other(folder):
    """Return a process that shares the node until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", SHARE, str(folder)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "shared\n" == process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_those_who_share_do_not_wait_for_each_other(other, folder):
    """Two launches beside each other, and nobody is told to wait."""
    said = []
    with shared_node("mine", said.append, folder):
        assert 2 == len(list(folder.glob(f"{SHARER}*")))
    assert [] == said
    assert 1 == len(list(folder.glob(f"{SHARER}*")))


def test_who_measures_alone_waits_for_those_who_share_and_a_killed_one_is_none(other, folder):
    """The sentence names who shares; the lock is had once nobody lives who does."""
    said = []

    def say(text):
        said.append(text)
        other.kill()

    with NodeLock("mine", folder, say):
        assert [] == list(folder.glob(f"{SHARER}*"))
    assert "it is measured by run other-run of user " in said[0]
    assert f"(process {other.pid}, since " in said[0]


def test_who_shares_waits_for_who_measures_alone_unless_it_does_not_want_to(folder):
    """`--share-node` waits for nobody; without it a launch does not come into a measurement."""
    with NodeLock("alone", folder):
        with shared_node("mine", lambda text: None, folder, wait=False):
            pass

        class Waited(Exception):
            pass

        def say(text):
            raise Waited(text)

        with pytest.raises(Waited, match="measured by run alone"), shared_node("mine", say, folder):
            pass
    assert [] == list(folder.glob(f"{SHARER}*"))


def test_an_error_while_waiting_alone_frees_the_lock(other, folder):
    """Ctrl-C while others still share the node leaves no lock held."""

    def say(text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NodeLock("mine", folder, say).acquire()
    with NodeLock("next", folder, alone=False) as lock:
        assert lock.held
