from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import line_profiler
import pytest

import perf
from perf.report.lines import ProfileError, launch_profiles, loader_share, read_profile, render

SOURCE = '''\
"""A loop as in the tutorials."""

import time


def other():
    return 1


def train(model, train_loader):
    """Train."""
    model.append(0)
    for data, target in train_loader:
        model.append(data)

        model.append(target)
        if data < 0:
            break
    return model
'''

FIRST = 10
"""The line of `def train` in SOURCE."""

LOADER = 13
"""The line of its loop."""


def load(path):
    """Import a file as a module of its own."""
    spec = importlib.util.spec_from_file_location("profiled_loop", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(path, timings, unit=1e-6):
    """Write a line profile with times of one's choice."""
    line_profiler.LineStats(timings, unit).to_file(path)
    return path


@pytest.fixture
def source(tmp_path):
    """A training loop at perf/training/loop.py, somewhere else than this checkout."""
    path = tmp_path / "elsewhere" / "perf" / "training" / "loop.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return path


@pytest.fixture
def profile(tmp_path, source):
    """A profile of `source` with round times: 84.5 % in the loop's head."""
    lines = [(12, 1, 5_000), (13, 4, 845_000), (14, 3, 100_000), (16, 3, 50_000), (19, 1, 0)]
    return write(tmp_path / "train-rank-0.lprof", {(str(source), FIRST, "train"): lines})


def test_a_real_profile_is_read(tmp_path, source):
    """What line_profiler measures of a run is shown by line, with its hits and all of its time."""
    profiler = line_profiler.LineProfiler()
    profiler(load(source).train)([], [(1, 2)] * 3)
    path = tmp_path / "train-rank-1.lprof"
    profiler.dump_stats(path)
    stats = read_profile(path, 1)
    assert {12: 1, 13: 4, 14: 3, 16: 3, 17: 3, 19: 1} == {line.line: line.hits for line in stats.lines}
    assert SOURCE.splitlines()[FIRST - 1 :] == stats.source
    measured = line_profiler.load_stats(path)
    (lines,) = measured.timings.values()
    assert pytest.approx(sum(line[2] for line in lines) * measured.unit) == stats.seconds
    assert 0.0 < loader_share(stats) < 1.0


def test_the_table_is_that_of_the_tutorials(profile):
    """Line number, hits, microseconds, per hit, share and source; lines that did not run have no numbers."""
    text = render([read_profile(profile)])
    lines = text.splitlines()
    assert lines[:4] == ["Rank: 0", "Timer unit: 1e-06 s", "", "Total time: 1 s"]
    assert lines[5] == "Function: train at line 10"
    assert lines[7] == "Line #      Hits         Time  Per Hit   % Time  Line Contents"
    assert lines[8] == "=" * len(lines[7])
    assert lines[9] == "    10                                           def train(model, train_loader):"
    assert (
        lines[12] == "    13         4     845000.0 211250.0     84.5      for data, target in train_loader:"
    )
    assert lines[-1] == "    19         1          0.0      0.0      0.0      return model"
    assert 9 + 10 == len(lines)


def test_the_table_agrees_with_line_profilers_own(profile, capsys):
    """Each row is, but for the width of its columns, what line_profiler prints of the same file."""
    stats = line_profiler.load_stats(profile)
    line_profiler.line_profiler.show_text(stats.timings, stats.unit, config=False)

    def table(text):
        return [line.split() for line in text.partition("======\n")[2].splitlines() if line.strip()]

    expected, found = table(capsys.readouterr().out), table(render([read_profile(profile)]))
    assert expected == found
    assert len(found) == 10


def test_time_is_shown_in_microseconds_whatever_the_unit(tmp_path, source):
    """line_profiler 5 counts nanoseconds on Linux; people compare with tables in microseconds."""
    path = write(tmp_path / "x.lprof", {(str(source), FIRST, "train"): [(LOADER, 2, 3_000)]}, unit=1e-9)
    assert re.search(r"^ +13 +2 +3\.0 +1\.5 +100\.0 +for data", render([read_profile(path)]), re.MULTILINE)


def test_the_loaders_share_is_found_from_the_source(profile):
    """845 of 1000 ms are spent in taking batches."""
    assert pytest.approx(0.845) == loader_share(read_profile(profile))


@pytest.mark.parametrize(
    ("expected", "head"),
    [
        (0.5, "    for i, (data, target) in enumerate(train_loader):"),
        (0.5, "    for data, target in islice(self.train_loader, 5):"),
        (0.5, "    for data, target in (  # a comment about train_loader"),
        (0.6, "    for data, target in islice(\n        train_loader,\n    ):"),
        (None, "    for data, target in validation_loader:  # not train_loader"),
        (None, "    while train_loader:"),
    ],
)
def test_the_loop_is_found_in_any_wrapping(tmp_path, expected, head):
    """enumerate, islice, attributes and heads over several lines count; comments and other loops do not."""
    if head.endswith("train_loader") and "(" in head:
        head += "\n        train_loader\n    ):"
    path = tmp_path / "a.py"
    body = head.count("\n") + 3
    path.write_text(f"def train(train_loader, validation_loader):\n{head}\n        step()\n")
    times = [(2, 5, 500), (3, 5, 100), (body, 5, 400)] if "\n" in head else [(2, 5, 500), (body, 5, 500)]
    if "comment" in head:
        times = [(2, 5, 500), (body, 5, 500)]
    stats = read_profile(write(tmp_path / "x.lprof", {(str(path), 1, "train"): times}))
    if expected is None:
        with pytest.raises(ProfileError, match=r"a\.py:1: train has no line 'for … in train_loader'"):
            loader_share(stats)
    else:
        assert pytest.approx(expected) == loader_share(stats)


def test_a_decorated_method_is_found(tmp_path):
    """A function's first line is its decorator's, and a method is named with its class."""
    path = tmp_path / "a.py"
    path.write_text(
        "class Trainer:\n"
        "    @profile\n"
        "    def train(self, train_loader):\n"
        '        """Doc\n'
        'string flush left."""\n'
        "        for x in train_loader:\n"
        "            x\n"
    )
    stats = read_profile(
        write(tmp_path / "x.lprof", {(str(path), 2, "Trainer.train"): [(6, 2, 30), (7, 1, 10)]})
    )
    assert pytest.approx(0.75) == loader_share(stats)
    assert "    @profile" == stats.source[0]


def test_the_suites_own_loop_is_preferred(tmp_path, source):
    """Of several functions named train, perf/training/loop.py's is shown; else the one that took longest."""
    own = (str(source), FIRST, "train")
    timings = {
        ("/a/a.py", 1, "train"): [(2, 1, 10)],
        own: [(LOADER, 1, 5)],
        ("/b/b.py", 1, "Model.train"): [(2, 1, 1000)],
        ("/c/c.py", 1, "pretrain"): [(2, 1, 9000)],
    }
    assert str(source) == read_profile(write(tmp_path / "x.lprof", timings)).file
    del timings[own]
    assert "/b/b.py" == read_profile(write(tmp_path / "x.lprof", timings)).file


def test_a_profile_without_train_says_what_it_holds(tmp_path):
    """Mode io drains the loader in another function: the error names it."""
    path = write(tmp_path / "x.lprof", {("/a/loop.py", 1, "drain"): [(2, 1, 1)]})
    with pytest.raises(ProfileError, match=r"rank 4: .*x\.lprof holds no function named train, but drain"):
        read_profile(path, 4)


def test_without_source_the_times_are_still_shown(tmp_path):
    """A file that is not here leaves the source out, says so, and has no loader share."""
    path = write(tmp_path / "x.lprof", {("/nowhere/a.py", 3, "train"): [(5, 2, 10)]})
    stats = read_profile(path, 2)
    text = render([stats])
    assert "No source: /nowhere/a.py can't be read here" in text
    assert re.search(r"^ +5 +2 +10\.0 +5\.0 +100\.0$", text, re.MULTILINE)
    with pytest.raises(
        ProfileError, match=r"rank 2, /nowhere/a\.py:3: the loader's line can't be found: .*read"
    ):
        loader_share(stats)


@pytest.mark.parametrize(
    "changed", ["\n" + SOURCE, SOURCE.replace("def train", "def trains"), "def train(:\n", ""]
)
def test_a_source_that_was_changed_is_not_shown(profile, source, changed):
    """Lines of another version beside the times would be a lie."""
    source.write_text(changed)
    stats = read_profile(profile)
    assert [] == stats.source
    assert stats.source_trouble
    with pytest.raises(ProfileError, match="the loader's line can't be found"):
        loader_share(stats)


def test_the_loop_of_a_container_is_read_from_this_checkout(tmp_path):
    """A rank that saw the suite under another path profiled the loop that stands here, if its line agrees."""
    own = Path(perf.__file__).parent / "training" / "loop.py"
    first = next(
        n for n, line in enumerate(own.read_text().splitlines(), start=1) if line.startswith("def train(")
    )
    seen = ("/container/stackproof/perf/training/loop.py", first, "train")
    stats = read_profile(write(tmp_path / "x.lprof", {seen: [(first + 9, 1, 10)]}))
    assert stats.source[0].startswith("def train(")
    later = read_profile(write(tmp_path / "y.lprof", {(seen[0], first + 1, "train"): [(first + 9, 1, 10)]}))
    assert [] == later.source
    assert "was changed after it was profiled" in later.source_trouble


def test_the_suites_own_loop_has_a_loader_line(tmp_path):
    """The share can be taken of the loop that the suite really runs."""
    own = Path(perf.__file__).parent / "training" / "loop.py"
    lines = own.read_text().splitlines()
    first = next(n for n, line in enumerate(lines, start=1) if line.startswith("def train("))
    (loop,) = [n for n in range(first, first + 20) if "in train_loader:" in lines[n - 1]]
    stats = read_profile(
        write(tmp_path / "x.lprof", {(str(own), first, "train"): [(loop, 9, 30), (loop + 1, 8, 10)]})
    )
    assert pytest.approx(0.75) == loader_share(stats)


def test_a_function_that_did_not_run_has_no_share(tmp_path, source):
    """Nothing of nothing is no share."""
    stats = read_profile(write(tmp_path / "x.lprof", {(str(source), FIRST, "train"): []}))
    with pytest.raises(ProfileError, match="no time was measured"):
        loader_share(stats)
    assert "Total time: 0 s" in render([stats])


def test_hostile_source_is_shown_as_text(tmp_path):
    """Control characters in a source line or a path do not reach the terminal."""
    path = tmp_path / "a\x1b[31m.py"
    path.write_text("def train(train_loader):\n    '\x1b[2J'\n    for x in train_loader: pass\n")
    text = render([read_profile(write(tmp_path / "x.lprof", {(str(path), 1, "train"): [(3, 1, 1)]}))])
    assert "\x1b" not in text
    assert r"'\x1b[2J'" in text
    assert r"a\x1b[31m.py" in text


@pytest.fixture
def folder(tmp_path, profile):
    """A run's folder with the profiles of two ranks of a launch."""
    place = tmp_path / "run" / "launches" / "launch-001"
    place.mkdir(parents=True)
    for rank in range(2):
        shutil.copy(profile, place / f"train-rank-{rank}.lprof")
    return tmp_path / "run"


NAMES = ["train-rank-0.lprof", "train-rank-1.lprof"]


def test_a_launch_has_a_profile_a_rank(launch, folder):
    """Profiles come in rank order, whatever the order of the names, and are drawn one after the other."""
    for names in (NAMES, NAMES[::-1]):
        profiles = launch_profiles(launch(line_profiles=names), folder)
        assert [0, 1] == [profile.rank for profile in profiles]
    text = render(profiles)
    assert ["Rank: 0", "Rank: 1"] == re.findall(r"^Rank: \d+$", text, re.MULTILINE)


def test_ten_ranks_are_in_numerical_order(launch, folder):
    """Rank 10 comes after rank 9."""
    place = folder / "launches" / "launch-001"
    names = [f"train-rank-{rank}.lprof" for rank in range(11)]
    for name in names[2:]:
        shutil.copy(place / names[0], place / name)
    profiles = launch_profiles(launch(line_profiles=sorted(names), nodes=1, ranks_per_node=11), folder)
    assert list(range(11)) == [profile.rank for profile in profiles]


def test_profiles_are_found_wherever_the_record_says(launch, folder, tmp_path):
    """Absolute names, names below the run, and absolute names of a run that was moved since."""
    place = folder / "launches" / "launch-001"
    for names in (
        [str(place / name) for name in NAMES],
        [f"launches/launch-001/{name}" for name in NAMES],
        [f"/gone/results/run/launches/launch-001/{name}" for name in NAMES],
    ):
        assert 2 == len(launch_profiles(launch(line_profiles=names), folder))
    kept = tmp_path / "moved"
    place.rename(kept)
    shutil.copytree(kept, folder / "profiles")
    assert 2 == len(launch_profiles(launch(line_profiles=NAMES), folder))


def test_a_rank_without_a_profile_is_named(launch, folder):
    """A rank that recorded none, and one whose file is gone: both are errors that name the rank."""
    with pytest.raises(ProfileError, match="launch launch-001 has no line profile of rank 1 of 2"):
        launch_profiles(launch(line_profiles=NAMES[:1]), folder)
    (folder / "launches" / "launch-001" / NAMES[1]).unlink()
    with pytest.raises(
        ProfileError, match=r"rank 1: .*run/launches/launch-001/train-rank-1\.lprof is missing"
    ):
        launch_profiles(launch(line_profiles=NAMES), folder)
