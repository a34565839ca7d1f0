from __future__ import annotations

import datetime
import re

import pytest
from launch_records import record_of

from perf import records
from perf.calibration import __main__ as command
from perf.catalogue import GROUPS

MEMBER = GROUPS["loader@mnist_cnn-cpu"].member("single", mode="full")
NOON = datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.UTC).timestamp()


@pytest.fixture
def stored(tmp_path):
    """Make a run's folder with launches of one variant, a day after day 0."""

    def make(name="r1", day=0, rate=1.0, count=10, cpu="C"):
        run = records.Run.create(tmp_path / "results", name)
        for i in range(count):
            launch = record_of(
                MEMBER, 0.01 * rate * (1 + i % 3 / 1000), started_at=NOON + day * 86400 + i, run=name
            )
            run.append(records.RECORDS, launch)
        run.write_environment({"cpu_model": cpu, "user": "maria", "stack": {"gpus": []}})
        return run.folder

    return make


@pytest.fixture
def calibrate(tmp_path, capsys):
    """Run the command on a folder of references of its own; returns status, output and errors."""
    folder = tmp_path / "references"
    folder.mkdir()

    def run(*arguments):
        status = command.main([*map(str, arguments), "--references", str(folder)])
        out, err = capsys.readouterr()
        return status, out, err

    run.folder = folder
    return run


def test_nothing_is_written_before_it_was_shown_and_agreed_to(calibrate, stored):
    """Without --yes, where nobody can answer, the difference is shown and the status says that nothing was written."""
    status, out, _ = calibrate(stored())
    assert command.EXIT_NOT_WRITTEN == status
    assert "+[system]" in out
    assert "Nothing was written. Give --yes" in out
    assert [] == list(calibrate.folder.iterdir())


def test_what_is_found_is_told_and_written(calibrate, stored):
    """Rate, launches, spread, margin and what A/A says are told; the file is named after the system."""
    status, out, _ = calibrate(stored(), "--yes", "--single-node")
    assert 0 == status
    assert re.search(
        r"throughput: 63\d\d samples/s, 10 launches, spread 0\.\d+ %.* margin 2\.0 %, A/A pass", out
    )
    path = calibrate.folder / "cpu-c.toml"
    assert f"written: {path}" in out
    assert "single_node = true" in path.read_text(encoding="utf-8")


def test_a_second_occasion_is_merged_and_shown_as_a_difference(calibrate, stored):
    """The next date adds its occasion; the difference shows what is added and what changes."""
    calibrate(stored(), "--yes")
    status, out, _ = calibrate(stored("r2", day=7), "--yes")
    assert 0 == status
    assert "+date = 2026-12-05" in out
    text = (calibrate.folder / "cpu-c.toml").read_text(encoding="utf-8")
    assert ["2026-11-28", "2026-12-05"] == re.findall(r"^date = (\S+)", text, re.MULTILINE)


def test_the_same_run_again_changes_nothing(calibrate, stored):
    """Recording a run twice leaves the file as it is."""
    run = stored()
    calibrate(run, "--yes")
    assert (0, "Nothing changes.") == ((found := calibrate(run, "--yes"))[0], found[1].splitlines()[-1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--margin", "0.2%"), "is below three times the spread"),
        (("--", "-k", "x"), "with a RUN nothing is measured"),
        (("--name", "../x"), "--name ../x: a name is letters, digits"),
        (("--name", "a b/c"), "begins with a letter or a digit"),
        (("--name", ".x"), "a name is letters"),
        (("--name", "x\n"), "a name is letters"),
        (("--name", ""), "a name is letters"),
        (("--launches", "0"), "--launches 0: an occasion needs 5"),
        (("--days", "-1"), "--days -1: expected 1 to 3650"),
        (("--days", "99999999999"), "expected 1 to 3650"),
    ],
)
def test_what_can_t_be_done_is_an_error(calibrate, stored, capsys, arguments, words):
    """A margin that is too small, arguments that mean nothing here: status 4, a sentence, nothing written."""
    run = stored()
    folder = calibrate.folder
    options = ["--references", str(folder), "--yes"]
    assert command.EXIT_USAGE == command.main([*options, str(run), *arguments])
    assert words in capsys.readouterr().err
    assert [] == list(folder.iterdir())


def test_a_new_file_has_the_name_that_was_given(calibrate, stored):
    """A name of one file is taken as it is."""
    status, _, _ = calibrate(stored(), "--yes", "--name", "Lab-2.h200_x")
    assert (0, ["Lab-2.h200_x.toml"]) == (status, [path.name for path in calibrate.folder.iterdir()])


@pytest.mark.parametrize("margin", ["abc", "", "nan", "1_0%", "100%", "0", "-2%", "\u0663%"])
def test_a_margin_that_is_no_percentage_is_told_what_is_one(calibrate, stored, margin, capsys):
    """No word of the program's own inside, but what is expected."""
    with pytest.raises(SystemExit):
        calibrate(stored(), f"--margin={margin}")
    assert f"argument --margin: expected a percentage such as 2%, got {margin!r}" in capsys.readouterr().err


@pytest.mark.parametrize("margin", ["2%", "2", "2.0 %", ".5%"])
def test_a_margin_may_be_written_in_more_ways_than_one(calibrate, stored, margin):
    """The percent sign may be left out, and so may a zero before the point."""
    status, _, err = calibrate(stored(), "--yes", f"--margin={margin}")
    assert (0, "") == (status, err)


def test_a_run_without_enough_launches_records_nothing(calibrate, stored):
    """What is left out is told with its reason, and the status is no 0."""
    status, out, err = calibrate(stored(count=4), "--yes")
    assert command.EXIT_USAGE == status
    assert "left out: mnist_cnn-single-1cpu-fp32-native has 4 launches, an occasion needs 5" in out
    assert "has nothing to record" in err


def test_a_mistake_in_a_file_stops_before_anything_is_written(calibrate, stored):
    """A file that can't be read is an error with its line, and stays as it is."""
    broken = calibrate.folder / "x.toml"
    broken.write_text("schema = 1\nschema = 1\n", encoding="utf-8")
    status, _, err = calibrate(stored(), "--yes")
    assert command.EXIT_USAGE == status
    assert "x.toml:2: schema: written twice" in err


def test_another_systems_file_is_not_written_to(calibrate, stored):
    """A name that is taken by another system is refused."""
    calibrate(stored(), "--yes")
    status, _, err = calibrate(stored("r2", cpu="D"), "--yes", "--name", "cpu-c")
    assert command.EXIT_USAGE == status
    assert "is of another system" in err


@pytest.mark.parametrize("form", [["--results={}"], ["--results", "{}"], ["--results=x", "--results", "{}"]])
def test_measuring_is_pytest_with_the_arguments_after_the_dashes(calibrate, stored, monkeypatch, form):
    """Without a RUN pytest measures the floors; what follows -- goes to it, and its run is what is read."""
    folder = stored()
    asked = []

    def run(words, **options):
        asked.append(words)
        return type("Done", (), {"returncode": 0})

    monkeypatch.setattr(command.subprocess, "run", run)
    options = ["--references", str(calibrate.folder), "--launches", "12", "--yes"]
    theirs = [word.format(folder.parent) for word in form]
    assert 0 == command.main([*options, "--", *theirs, "--stack=p"])
    (words,) = asked
    assert ["-m", "pytest", "perf", "--profile", "quick", "--launches=12", "-k", "floor or ceiling"] == words[
        3:11
    ]
    assert [*theirs, "--stack=p"] == words[11:]


def test_a_folder_that_is_not_there_is_told_before_anything_is_measured(calibrate, monkeypatch, capsys):
    """Measuring may take an hour, and what it found could not be written."""
    monkeypatch.setattr(command.subprocess, "run", lambda *a, **k: pytest.fail("it measured"))
    missing = calibrate.folder / "missing"
    assert command.EXIT_USAGE == command.main(["--references", str(missing), "--", "--stack=p"])
    assert f"{missing} is no folder; make it" in capsys.readouterr().err


def test_a_run_that_ended_badly_is_not_recorded(calibrate, monkeypatch):
    """Invalid launches, or none, are no reference."""
    monkeypatch.setattr(command.subprocess, "run", lambda *a, **k: type("Done", (), {"returncode": 11}))
    status, _, err = calibrate()
    assert command.EXIT_USAGE == status
    assert "measuring ended with status 11" in err


def test_names_are_printed_without_control_characters(calibrate, stored):
    """A CPU that is called like an escape sequence does not colour the terminal."""
    _, out, _ = calibrate(stored(cpu="\x1b[31mred"))
    assert "\x1b" not in out
