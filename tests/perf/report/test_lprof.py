from __future__ import annotations

import pathlib
import pickle

import line_profiler
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.report.lprof import ProfileError, load_stats

FUNCTIONS = st.tuples(
    st.sampled_from(["/a/loop.py", "b.py"]), st.integers(1, 99), st.sampled_from(["train", "A.f"])
)
LINES = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 10**6), st.integers(0, 10**15)))


class Calls:
    """Pickles as a call of whatever it is given."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@settings(max_examples=40)
@given(st.dictionaries(FUNCTIONS, LINES, max_size=3), st.sampled_from([1e-9, 1e-6, 1.0]))
def test_files_read_as_line_profiler_reads_them(tmp_path_factory, timings, unit):
    """What line_profiler 5.1 writes gives the timings and the unit that its own reader gives."""
    path = tmp_path_factory.mktemp("lprof") / "train-rank-0.lprof"
    line_profiler.LineStats(timings, unit).to_file(path)
    expected = line_profiler.load_stats(path)
    stats = load_stats(path, 0)
    assert (expected.timings, expected.unit) == (stats.timings, stats.unit)


def test_files_of_older_line_profilers_are_read(tmp_path):
    """Up to version 4 the class came from the compiled module; a stack may bring such a version."""
    path = tmp_path / "old.lprof"
    line_profiler.LineStats({("a.py", 1, "train"): [(2, 3, 4)]}, 1e-6).to_file(path)
    # A short string of a pickle carries its length in one byte before it: 0x1b is 27, 0x1c is 28.
    new, old = b"\x1bline_profiler.line_profiler", b"\x1cline_profiler._line_profiler"
    content = pickle.dumps(pickle.loads(path.read_bytes()), protocol=4)
    assert 1 == content.count(new)
    body = content.replace(new, old)
    # The frame that holds the whole pickle is one byte longer now: 8 bytes, little-endian, after the third byte.
    size = int.from_bytes(body[3:11], "little") + 1
    path.write_bytes(body[:3] + size.to_bytes(8, "little") + body[11:])
    assert {("a.py", 1, "train"): [(2, 3, 4)]} == load_stats(path, 0).timings


def test_nothing_in_a_file_is_run(tmp_path):
    """A file that would call something when it is unpickled is refused, and what it names is said."""
    path, trace = tmp_path / "bad.lprof", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Calls(pathlib.Path.touch, trace)))
    with pytest.raises(
        ProfileError, match=r"rank 3: .*bad\.lprof is no line profile.*which no line profile holds"
    ):
        load_stats(path, 3)
    assert not trace.exists()
    path.write_bytes(pickle.dumps(Calls(eval, f"open({str(trace)!r}, 'w')")))
    with pytest.raises(ProfileError, match=r"builtins\.eval|__builtin__\.eval"):
        load_stats(path, 3)
    assert not trace.exists()


def test_a_missing_file_names_file_and_rank(tmp_path):
    """Who looks for a profile learns which rank did not write it."""
    with pytest.raises(ProfileError, match=r"rank 7: .*train-rank-7\.lprof is missing"):
        load_stats(tmp_path / "train-rank-7.lprof", 7)


def test_a_file_that_cannot_be_opened_names_file_and_rank(tmp_path):
    """A folder in the file's place is an error of its own kind."""
    with pytest.raises(ProfileError, match=r"rank 1: .* can't be read \(Is a directory\)"):
        load_stats(tmp_path, 1)


@settings(max_examples=50)
@given(st.data())
def test_a_damaged_file_is_a_clear_error(tmp_path_factory, data):
    """A file cut anywhere, or with a byte changed, is either read or refused with file and rank: nothing else."""
    path = tmp_path_factory.mktemp("lprof") / "x.lprof"
    line_profiler.LineStats({("a.py", 1, "train"): [(2, 3, 4), (3, 4, 500_000)]}, 1e-6).to_file(path)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        stats = load_stats(path, 5)
    except ProfileError as error:
        message = str(error)
    else:
        message = f"rank 5: {path}"
        assert stats.unit > 0
        assert all(len(line) == 3 for lines in stats.timings.values() for line in lines)
    assert f"rank 5: {path}" in message


@pytest.mark.parametrize(
    "content",
    [
        {"timings": {}, "unit": 1e-6},
        line_profiler.LineStats({"train": []}, 1e-6),
        line_profiler.LineStats({("a", 1, "train"): [(1, 2)]}, 1e-6),
        line_profiler.LineStats({("a", 1, "train"): [(1, 2, "x")]}, 1e-6),
        line_profiler.LineStats({}, 0),
        line_profiler.LineStats([], 1e-6),
    ],
)
def test_a_pickle_of_something_else_is_refused(tmp_path, content):
    """Only timings by function, as triples of numbers, and a positive unit are a line profile."""
    path = tmp_path / "x.lprof"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(ProfileError, match=r"rank 0: .* does not hold timings by function and a unit"):
        load_stats(path, 0)
