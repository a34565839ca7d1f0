from __future__ import annotations

import pytest

from perf.records import RECORDS, VERDICTS, Run
from perf.report.stored import NoRun, load


@pytest.fixture
def run(tmp_path, launch, verdict):
    """A stored run of two launches and one judgement."""
    run = Run.create(tmp_path / "results", "20261127T101500Z-abcdef")
    run.append(RECORDS, launch(launch="1"))
    run.append(RECORDS, launch(launch="2"))
    run.append(VERDICTS, verdict())
    run.write_environment({"system": "laptop"})
    return run


def test_a_run_is_read_whole(run, launch, verdict):
    """Launches, judgements and environment come back as they were written."""
    stored = load(run.folder)
    assert [launch(launch="1"), launch(launch="2")] == stored.records
    assert ([verdict()], {"system": "laptop"}, []) == (stored.verdicts, stored.environment, stored.notes)


def test_latest_is_followed_to_the_runs_own_folder(run):
    """A report names the run, not the link that will point elsewhere tomorrow."""
    assert run.folder == load(run.folder.parent / "latest").folder


def test_a_line_that_was_cut_short_hides_no_other(run, launch):
    """A killed writer costs its own line; file and line are in the notes, and so is a line that is no UTF-8."""
    path = run.folder / RECORDS
    with path.open("ab") as file:
        file.write(b'{"run":"x"\n\xff\n\n')
    run.append(RECORDS, launch(launch="3"))
    stored = load(run.folder)
    assert ["1", "2", "3"] == [record.launch for record in stored.records]
    assert [f"left out: {path}:3:", f"left out: {path}:4:"] == [
        note[: len(f"left out: {path}:3:")] for note in stored.notes
    ]


def test_a_run_that_was_killed_early_is_a_run(run):
    """Without judgements, records or environment there is still something to tell."""
    (run.folder / VERDICTS).unlink()
    (run.folder / RECORDS).unlink()
    stored = load(run.folder)
    assert ([], [], []) == (stored.records, stored.verdicts, stored.notes)


@pytest.mark.parametrize(
    ("content", "said"), [("{", "not readable as JSON"), ("[]", "expected a JSON object")]
)
def test_a_broken_environment_is_noted(run, content, said):
    """The tables do not depend on it."""
    (run.folder / "environment.json").write_text(content)
    stored = load(run.folder)
    assert {} == stored.environment
    assert 2 == len(stored.records)
    (note,) = stored.notes
    assert said in note
    assert "environment.json" in note


def test_a_missing_environment_is_noted(run):
    """A report that can't say where the run was made says so."""
    (run.folder / "environment.json").unlink()
    (note,) = load(run.folder).notes
    assert "environment.json is missing" in note


def test_what_is_no_run_is_refused_in_words(run, tmp_path):
    """A missing path, a file, a dead link, an empty folder and a folder of runs: each says what to name instead."""
    file, dead, empty = tmp_path / "file", tmp_path / "dead", tmp_path / "empty"
    file.write_text("")
    dead.symlink_to("gone")
    empty.mkdir()
    for path, said in [
        (tmp_path / "absent", "does not exist"),
        (file, "is no folder"),
        (dead, "points at gone, which is gone"),
        (empty, "is no run"),
        (run.folder.parent, f"it holds runs, name one of them, such as {run.folder.parent}"),
    ]:
        with pytest.raises(NoRun) as caught:
            load(path)
        assert said in str(caught.value)
        assert str(path) in str(caught.value)
