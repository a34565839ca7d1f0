from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from perf.launch import lock as lock_module
from perf.launch.lock import HOLDER_FILE, LOCK_FILE, LockError, NodeLock, lock_folder, read_holder
from perf.machine import REPOSITORY

HOLD = """
import sys, time
from pathlib import Path
from perf.launch.lock import NodeLock
with NodeLock("other-run", Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
COUNT = """
import sys, time
from pathlib import Path
from perf.launch.lock import NodeLock
folder, number = Path(sys.argv[1]), Path(sys.argv[1], "number")
for _ in range(5):
    with NodeLock("r", folder, say=lambda text: None):
        value = int(number.read_text())
        time.sleep(0.01)
        number.write_text(str(value + 1))
"""


@pytest.fixture
def folder(tmp_path):
    """Return where the lock lies: a folder that is not there yet."""
    return tmp_path / "stackproof"


@pytest.fixture
def hold(folder):
    """Return a function that starts a process which holds the lock until it is told to end."""
    started = []

    def hold():
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert "held\n" == process.stdout.readline()
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_two_processes_never_hold_it_together(folder):
    """Two processes that each count up five times under the lock arrive at ten."""
    folder.mkdir()
    (folder / "number").write_text("0")
    processes = [
        subprocess.Popen([sys.executable, "-c", COUNT, str(folder)], cwd=REPOSITORY) for _ in range(2)
    ]
    assert [0, 0] == [process.wait() for process in processes]
    assert "10" == (folder / "number").read_text()


def test_who_waits_is_told_who_holds_it_and_gets_it_when_the_holder_is_killed(hold, folder):
    """The sentence names run and process; SIGKILL of the holder frees the lock."""
    holder = hold()
    said = []

    def say(text):
        said.append(text)
        holder.kill()

    with NodeLock("mine", folder, say) as lock:
        assert lock.held
    assert not lock.held
    assert f"run other-run of user {lock_module._user()} (process {holder.pid}, since " in said[0]


def test_a_free_lock_says_nothing(folder):
    """Nobody waits, so nobody is told."""
    said = []
    with NodeLock("r", folder, said.append):
        pass
    assert [] == said


def test_the_holder_can_enter_again(folder):
    """A group that holds the lock launches under it; it is freed at the outermost end."""
    lock = NodeLock("r", folder)
    with lock:
        with lock:
            pass
        assert lock.held
        assert read_holder(folder) is not None
    assert not lock.held
    assert read_holder(folder) is None


def test_releasing_what_is_not_held_is_an_error(folder):
    """A release too many would free somebody's lock at the wrong time."""
    with pytest.raises(RuntimeError, match="more often"):
        NodeLock("r", folder).release()


def test_an_error_under_the_lock_frees_it(folder):
    """The lock goes with the block, however that ends."""
    with pytest.raises(ZeroDivisionError), NodeLock("r", folder):
        raise ZeroDivisionError
    with NodeLock("r", folder):
        pass


def test_every_user_of_the_node_can_use_it_whatever_the_umask(folder):
    """Folder and lock file are writable by all, the folder is not sticky, the holder's note is readable."""
    before = os.umask(0o077)
    try:
        with NodeLock("r", folder):
            modes = [
                stat.S_IMODE(path.stat().st_mode)
                for path in (folder, folder / LOCK_FILE, folder / HOLDER_FILE)
            ]
    finally:
        os.umask(before)
    assert [0o777, 0o666, 0o644] == modes


def test_something_else_in_the_folders_place_is_an_error(folder):
    """A file is no folder, and the error says where to look."""
    folder.write_text("")
    with pytest.raises(LockError, match=r"can't be made.*look at `ls -ld"):
        NodeLock("r", folder).acquire()


def test_a_link_in_the_folders_place_is_not_followed(folder, tmp_path):
    """In /tmp a link may have been laid by anybody."""
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LockError, match="is a link"):
        NodeLock("r", folder).acquire()
    assert [] == list((tmp_path / "elsewhere").iterdir())


def test_a_link_in_the_lock_files_place_is_not_followed(folder, tmp_path):
    """A link to somebody's file is an error and leaves that file alone."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder.mkdir()
    (folder / LOCK_FILE).symlink_to(victim)
    with pytest.raises(LockError, match="can't be used"):
        NodeLock("r", folder).acquire()
    assert ("precious", 0o666 & victim.stat().st_mode) == (
        victim.read_text(),
        stat.S_IMODE(victim.stat().st_mode),
    )


def test_a_folder_of_another_user_that_is_not_writable_says_what_its_owner_should_do(folder, monkeypatch):
    """The remedy is the owner's: chmod or remove."""
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(LockError, match=f"chmod 0777 {folder}"):
        NodeLock("r", folder).acquire()


def test_a_note_of_a_process_that_is_gone_is_not_believed(folder):
    """A number that was used again does not make the old holder live."""
    folder.mkdir()
    note = {"pid": os.getpid(), "user": "u", "run": "r", "since": time.time(), "started": 1.0}
    (folder / HOLDER_FILE).write_text(json.dumps(note))
    assert read_holder(folder) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[" * 4000, '{"pid": 1}', '{"pid": -5, "user": 1, "run": 1, "since": 1, "started": 1}'],
)
def test_a_note_that_is_none_is_not_believed(folder, text):
    """Anybody can write there, and anything."""
    folder.mkdir()
    (folder / HOLDER_FILE).write_text(text)
    assert read_holder(folder) is None


def test_a_note_in_hostile_characters_is_made_harmless(hold, folder):
    """What another user wrote is shown on this user's terminal."""
    hold()
    note = json.loads((folder / HOLDER_FILE).read_text())
    (folder / HOLDER_FILE).write_text(json.dumps({**note, "run": "\x1b[2J" + "x" * 500, "since": 1e300}))
    shown = str(read_holder(folder))
    assert r"\x1b[2Jx" in shown
    assert len(shown) < 300


def test_a_pipe_in_the_notes_place_does_not_block(folder):
    """Opening a pipe would wait for a writer that never comes."""
    folder.mkdir()
    os.mkfifo(folder / HOLDER_FILE)
    assert read_holder(folder) is None


def test_the_lock_lies_in_tmp_whatever_the_jobs_own_temporary_folder_is(monkeypatch, tmp_path):
    """Jobs with a TMPDIR of their own still exclude each other; without a usable /tmp Python's choice is taken."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert Path("/tmp/stackproof") == lock_folder()
    monkeypatch.setattr(lock_module, "SHARED_TMP", str(tmp_path / "none"))
    assert tmp_path / "stackproof" == lock_folder()
