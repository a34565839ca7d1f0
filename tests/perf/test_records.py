"""The files of a run: whole lines, readable at any moment, whatever happens to whoever writes them."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf import contract, records
from perf.contract import ContractError, encode
from perf.records import LATEST, Event, Run, append_line, new_run_name, read_lines

ROOT = Path(__file__).parents[2]


def note(text: str) -> Event:
    return Event("note", 1.0, text=text)


def texts(path: Path) -> list[str]:
    return [event.text for event in read_lines(path, Event)]


# --- appending and reading


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=8))
def test_lines_come_back_in_order(tmp_path_factory, written):
    """Every record is one line, whatever it holds, and is read back in the order of writing."""
    path = tmp_path_factory.mktemp("lines") / "events.jsonl"
    path.touch()
    for text in written:
        append_line(path, encode(note(text)))

    assert written == texts(path)
    assert len(written) == path.read_bytes().count(b"\n")


def test_a_line_feed_inside_a_line_is_refused(tmp_path):
    """Two lines are not one record; nothing is written."""
    with pytest.raises(ValueError, match="must not hold a line feed"):
        append_line(tmp_path / "x", "a\nb")

    assert [] == list(tmp_path.iterdir())


@settings(deadline=None)
@given(st.data())
def test_a_half_line_of_a_killed_writer_is_closed(tmp_path_factory, data):
    """After a writer died inside its line the next one starts a new line: only the broken one is lost."""
    path = tmp_path_factory.mktemp("killed") / "events.jsonl"
    append_line(path, encode(note("before")))
    line = encode(note("killed")).encode()
    half = line[: data.draw(st.integers(1, len(line) - 1))]
    with path.open("ab") as stream:
        stream.write(half)

    append_line(path, encode(note("after")))
    append_line(path, encode(note("later")))

    lines = path.read_bytes().split(b"\n")
    assert [half, b""] == [lines[1], lines[4]]
    path.write_bytes(b"\n".join([lines[0], *lines[2:]]))
    assert ["before", "after", "later"] == texts(path)


def test_a_broken_line_is_named_with_file_and_number(tmp_path):
    """Whoever reads the file is told which line to look at; blank lines count but are no records."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(f"{encode(note('a'))}\n\n{encode(note('b'))[:20]}\n".encode())

    with pytest.raises(ContractError, match=rf"^{re.escape(str(path))}:3: not readable as JSON"):
        read_lines(path, Event)


def test_a_line_that_is_no_text_is_named_too(tmp_path):
    """Bytes that are no UTF-8 have a line number as well."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(encode(note("a")).encode() + b"\n" + b"\xff\xff\n")

    with pytest.raises(ContractError, match=r"events\.jsonl:2: not readable as JSON"):
        read_lines(path, Event)


@pytest.mark.parametrize("character", ["\u2028", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(tmp_path, character):
    """Other writers leave such characters unescaped; Python would take them for line ends."""
    path = tmp_path / "events.jsonl"
    text = json.dumps({"kind": "note", "time": 1.0, "text": "aHEREb"}).replace("HERE", character)
    if character < " ":
        text = text.replace(character, f"\\u{ord(character):04x}")
    append_line(path, text)

    assert [f"a{character}b"] == texts(path)


def test_no_file_is_another_error_than_an_empty_one(tmp_path):
    """A file that is not there is FileNotFoundError; an empty one holds nothing."""
    (tmp_path / "empty").touch()

    assert [] == read_lines(tmp_path / "empty", Event)
    with pytest.raises(FileNotFoundError):
        read_lines(tmp_path / "missing", Event)


# --- several writers, full disks

WRITER = """
import sys
from pathlib import Path
from perf.contract import encode
from perf.records import Event, append_line
name, path = sys.argv[1], Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(60):
    append_line(path, encode(Event("note", 1.0, number=number, worker=name, text=name * 20_000)))
"""


def test_processes_that_append_at_once_never_mix_their_lines(tmp_path):
    """Every line of three writers is whole, and each writer's own lines are in order."""
    path = tmp_path / "events.jsonl"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, name, str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in "abc"
    ]
    for writer in writers:
        assert b"ready\n" == writer.stdout.readline()
    for writer in writers:
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
    assert [0, 0, 0] == [writer.returncode for writer in writers]

    events = read_lines(path, Event)
    for name in "abc":
        assert list(range(60)) == [event.number for event in events if event.worker == name]
    assert all(event.text == event.worker * 20_000 for event in events)


def test_a_writer_waits_for_the_lock(tmp_path):
    """While somebody else holds the file's lock nothing is written."""
    path = tmp_path / "events.jsonl"
    append_line(path, encode(note("first")))
    with path.open("rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code = "import sys, pathlib, perf.records as r; r.append_line(pathlib.Path(sys.argv[1]), '{}')"
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT)
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(timeout=0.7)
        assert ["first"] == texts(path)
    assert 0 == writer.wait(timeout=60)
    assert b"{}" == path.read_bytes().split(b"\n")[1]


@pytest.fixture
def two_lines(tmp_path) -> Path:
    path = tmp_path / "events.jsonl"
    append_line(path, encode(note("one")))
    append_line(path, encode(note("two")))
    return path


def test_a_full_disk_leaves_the_file_as_it_was(two_lines):
    """The kernel takes a part of the line only: the part is taken away again, and the error says what happened."""
    before = two_lines.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit on the size of files shortens a write as a full disk does. Python ignores the signal.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(
            OSError, match=r"events\.jsonl: only 10 of \d+ bytes could be written; is the disk full"
        ):
            append_line(two_lines, encode(note("three")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert before == two_lines.read_bytes()
    append_line(two_lines, encode(note("four")))
    assert ["one", "two", "four"] == texts(two_lines)


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_an_error_of_the_disk_leaves_the_file_as_it_was(two_lines, monkeypatch, call):
    """A line that could not be written or synced is not there for a later reader."""
    before = two_lines.read_bytes()

    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, broken)
        with pytest.raises(OSError, match="Input/output error"):
            append_line(two_lines, encode(note("three")))

    assert before == two_lines.read_bytes()


def test_a_half_line_stays_where_closing_it_fails(two_lines, monkeypatch):
    """A full disk takes nothing away that somebody else wrote, not even a broken line."""
    with two_lines.open("ab") as stream:
        stream.write(b'{"kind":')
    before = two_lines.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))

    with pytest.raises(OSError, match="is the disk full"):
        append_line(two_lines, encode(note("three")))

    assert before == two_lines.read_bytes()


# --- a run's folder


def test_a_run_has_a_folder_and_latest_points_at_it(tmp_path):
    """The newest run can be found by one name; the link is relative, so that results can be moved as a whole."""
    first = Run.create(tmp_path / "results")
    second = Run.create(tmp_path / "results", "named")
    latest = tmp_path / "results" / LATEST

    assert first.folder.is_dir()
    assert "named" == second.name
    assert "named" == str(latest.readlink())
    assert second.folder.resolve() == latest.resolve()
    assert {first.name, "named", LATEST} == {path.name for path in (tmp_path / "results").iterdir()}


def test_latest_is_moved_on_where_its_run_is_gone(tmp_path):
    """A link into nothing is replaced like any other."""
    (tmp_path / LATEST).symlink_to("gone")

    assert Run.create(tmp_path).name == str((tmp_path / LATEST).readlink())


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["folder", "file"])
def test_something_else_called_latest_is_left_alone(tmp_path, make):
    """A folder or file of that name is somebody's: the error says what to do, and nothing is left over."""
    make(tmp_path / LATEST)

    with pytest.raises(FileExistsError, match=r"latest should be a link to the newest run.*move it away"):
        Run.create(tmp_path, "run")

    assert {LATEST, "run"} == {path.name for path in tmp_path.iterdir()}


def test_a_run_is_named_by_utc_and_a_random_part():
    """Names sort by time, wherever they were made, and two runs of one second differ."""
    berlin = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2026, 7, 1, 1, 30, 5, tzinfo=berlin)

    assert re.fullmatch(r"20260630T233005Z-[0-9a-f]{6}", new_run_name(moment))
    assert 50 == len({new_run_name(moment) for _ in range(50)})
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}", new_run_name())


def test_records_and_verdicts_are_read_by_kind(tmp_path):
    """What a run appended is read back from its own file."""
    run = Run.create(tmp_path)
    verdict = records.VerdictRecord(
        run.name, "test", "group", "v", "w", "ratio", "1", 1.1, None, 1.2, 1.0, "fail", 5, 0.04, ["because"]
    )
    run.append(records.VERDICTS, verdict)
    run.append(records.EVENTS, note("hello"))

    assert [verdict] == run.verdicts()
    assert ["hello"] == texts(run.folder / records.EVENTS)
    with pytest.raises(FileNotFoundError):
        run.records()


def test_folders_of_a_run_are_made_when_they_are_asked_for(tmp_path):
    """Launches and profiles have folders of their own, made once."""
    run = Run.create(tmp_path, "run")

    assert tmp_path / "run" / "launches" / "main-0001" == run.launch_folder("main-0001")
    assert run.launch_folder("main-0001").is_dir()
    assert tmp_path / "run" / "profiles" == run.profile_folder()
    assert run.profile_folder().is_dir()


def test_the_environment_is_written_whole_or_not_at_all(tmp_path):
    """The file is JSON for people, replaced as a whole; what is no JSON leaves the old one."""
    run = Run.create(tmp_path)
    run.write_environment({"host": "n1", "cores": 2})
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.write_environment({"cores": float("nan")})

    text = (run.folder / records.ENVIRONMENT).read_text(encoding="utf-8")
    assert {"cores": 2, "host": "n1"} == json.loads(text)
    assert text.endswith("}\n")


H100S = Path(__file__).parents[2] / "docs" / "measurements" / "2026-11-28-h100-whole" / "records.jsonl"


def test_the_fast_way_of_reading_a_record_reads_the_same():
    """Every record of a real run is, field by field, what the contract's own reader makes of it."""
    for line in H100S.read_bytes().splitlines():
        expected = contract.decode(contract.LaunchRecord, line, "x")
        assert expected == records.decode_line(contract.LaunchRecord, line, "x")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r | {"new": 1}, "unknown key 'new'"),
        (lambda r: r | {"epochs": [[{**r["epochs"][0][0], "extra": 1}]]}, "unknown key 'extra'"),
        (lambda r: r | {"samples": "many"}, "must be a whole number"),
        (lambda r: {k: v for k, v in r.items() if k != "run"}, "lacks the key 'run'"),
        (lambda r: r | {"schema": 99}, "written with schema 99"),
    ],
)
def test_the_fast_way_of_reading_refuses_what_the_contract_does(change, said):
    """With the contract's own words and place."""
    line = next(line for line in H100S.read_bytes().splitlines() if json.loads(line)["epochs"][0])
    with pytest.raises(contract.ContractError, match=f"x:3.*{said}"):
        records.decode_line(contract.LaunchRecord, json.dumps(change(json.loads(line))).encode(), "x:3")
