from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import line_profiler
import pytest

import perf
from perf.records import RECORDS, VERDICTS, Run
from perf.report.__main__ import main


@pytest.fixture
def run(tmp_path, launch, verdict):
    """A stored run with a launch and two judgements."""
    run = Run.create(tmp_path / "results", "20261127T101500Z-abcdef")
    run.append(RECORDS, launch())
    run.append(VERDICTS, verdict())
    run.append(VERDICTS, verdict(verdict="pass", reasons=[]))
    run.write_environment({"system": "laptop"})
    return run


def test_a_stored_run_is_printed_again(run, launch, capsys):
    """The tables, the header and the account of the run that 'latest' points at, without an error."""
    assert 0 == main([str(run.folder.parent / "latest")])
    out, err = capsys.readouterr()
    assert "" == err
    (variant, account) = (launch().variant, "verdicts: 1 pass, 1 fail")
    for words in ("system  laptop", variant, "✗ fail", account, f"files: {run.folder}"):
        assert words in out


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--lines"]])
def test_a_folder_that_is_no_run_is_an_error(tmp_path, capsys, arguments):
    """Exit status 2, nothing on standard output, and on standard error what to name instead."""
    assert 2 == main([str(tmp_path), *arguments])
    out, err = capsys.readouterr()
    assert "" == out
    assert err.startswith(f"error: {tmp_path} is no run")


def test_scripts_get_json(run, capsys, verdict):
    """Rows, account, environment and notes as one JSON object; numbers in full."""
    assert 0 == main([str(run.folder), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {
        "schema",
        "run",
        "folder",
        "answer",
        "environment",
        "data",
        "variants",
        "rates",
        "fractions",
        "verdicts",
        "account",
        "failures",
        "tests",
        "time",
        "gpus_held",
        "notes",
    } == set(found)
    assert ("fail", "No: 1 limit is missed.") == (found["answer"]["state"], found["answer"]["sentence"])
    assert [("mnist", 8.2)] == [(row["group"], row["total"]) for row in found["time"]]
    assert (1, run.name, {"system": "laptop"}) == (found["schema"], found["run"], found["environment"])
    assert [0.0751] == [row["median_step_seconds"] for row in found["variants"]]
    assert verdict().test == found["verdicts"][0]["test"]
    assert [1.31, 1.31] == [row["estimate"] for row in found["verdicts"]]
    assert {
        "judgements": 2,
        "false_fail": 4.4e-4,
        "counts": {"pass": 1, "fail": 1},
        "too_many": False,
    } == found["account"]


def test_json_holds_no_nan(run, capsys):
    """Python reads NaN and Infinity from a file; other languages don't, so they become null."""
    (run.folder / "environment.json").write_text('{"load": [Infinity, NaN, 1.5]}')
    assert 0 == main([str(run.folder), "--json"])
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert {"load": [None, None, 1.5]} == found["environment"]


def test_what_could_not_be_read_is_told(run, capsys):
    """A broken line is a note in both forms, and no reason to print nothing."""
    with (run.folder / RECORDS).open("a") as file:
        file.write("{\n")
    assert 0 == main([str(run.folder)])
    assert "note: left out: " in capsys.readouterr().out
    assert 0 == main([str(run.folder), "--json"])
    assert 1 == len(json.loads(capsys.readouterr().out)["notes"])


def test_line_profiles_are_printed_where_asked_for(run, launch, capsys, tmp_path):
    """--lines prints the profile of each rank; a missing one is an error that names it, after the others."""
    source = tmp_path / "a.py"
    source.write_text("def train(train_loader):\n    for x in train_loader:\n        x\n")
    for name in ("one", "two"):
        run.append(
            RECORDS, launch(launch=name, line_profiles=[f"train-rank-{rank}.lprof" for rank in range(2)])
        )
        for rank in range(2):
            stats = line_profiler.LineStats({(str(source), 1, "train"): [(2, 9, 30), (3, 8, 10)]}, 1e-6)
            stats.to_file(run.launch_folder(name) / f"train-rank-{rank}.lprof")
    assert 0 == main([str(run.folder), "--lines"])
    out = capsys.readouterr().out
    assert 2 == out.count("Rank: 1\n")
    assert 4 == out.count("     75.0      for x in train_loader:\n")
    (run.launch_folder("one") / "train-rank-1.lprof").unlink()
    assert 2 == main([str(run.folder), "--lines"])
    out, err = capsys.readouterr()
    assert 1 == out.count("Rank: 1\n")
    assert "rank 1" in err
    assert "train-rank-1.lprof is missing" in err


def test_a_run_without_line_profiles_says_how_to_get_them(run, capsys):
    """Asking for what was not measured is an error, after the tables."""
    assert 2 == main([str(run.folder), "--lines"])
    out, err = capsys.readouterr()
    assert "verdicts: 1 pass, 1 fail" in out
    assert "no launch of this run has a line profile" in err


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_command_works_in_a_pipe(run, encoding):
    """As a command, in a pipe, in any locale: 80 columns, no control characters, exit status 0."""
    root = Path(perf.__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONIOENCODING": encoding}
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "PYTHONUTF8"):
        environment.pop(name, None)
    command = [sys.executable, "-W", "error", "-m", "perf.report", str(run.folder)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
    assert (0, b"") == (done.returncode, done.stderr)
    text = done.stdout.decode(encoding)
    assert "mnist_cnn-ddp-2cpu-gloo-fp32-native" in text
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("files: "))


def test_the_driver_side_imports_no_torch():
    """Reports are drawn where no torch is installed; line_profiler is not needed either."""
    root = Path(perf.__file__).resolve().parent.parent
    modules = sorted(path.stem for path in (root / "perf" / "report").glob("[!_]*.py"))
    script = (
        f"import sys\nfor name in {modules!r}: __import__('perf.report.' + name)\n"
        "import perf.report.__main__\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'torchvision', 'models', 'line_profiler')"
        " or m.startswith('perf.training')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert "[]\n" == done.stdout
    assert 10 <= len(modules)


def test_the_command_json_is_the_option(run, capsys):
    """Both spellings print the same."""
    assert (0, 0) == (main(["json", str(run.folder)]), main([str(run.folder), "--json"]))
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :]


def test_the_page_is_written_and_named(run, capsys, tmp_path):
    """Beside the run's files, or where one says; two runs make a comparison."""
    assert 0 == main(["html", str(run.folder)])
    assert 0 == main(["html", str(run.folder), "-o", str(tmp_path / "x.html")])
    assert 0 == main(["html", str(run.folder), str(run.folder)])
    assert [
        str(run.folder / "report.html"),
        str(tmp_path / "x.html"),
        str(run.folder / "comparison.html"),
    ] == (capsys.readouterr().out.splitlines())
    assert "Run against run" not in (run.folder / "report.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_drawn_is_an_error(run, capsys, monkeypatch):
    """Exit status 1 with the reason, and no half file."""
    from perf.report import page, plotly

    def broken():
        raise plotly.NoPlotly("the report's pictures need the package plotly")

    monkeypatch.setattr(page, "library", broken)
    assert 1 == main(["html", str(run.folder)])
    assert "error: the report's pictures need" in capsys.readouterr().err
    assert not (run.folder / "report.html").exists()


@pytest.mark.parametrize("command", ["html", "json", "tensorboard"])
def test_commands_want_a_run(command, tmp_path, capsys):
    """Exit status 2, and what to name instead."""
    assert 2 == main([command, str(tmp_path)])
    assert "is no run" in capsys.readouterr().err


def test_event_files_are_written(run, capsys):
    """One a launch, and the command that shows them."""
    assert 0 == main(["tensorboard", str(run.folder)])
    assert f"1 launch: tensorboard --logdir {run.folder / 'tensorboard'}\n" == capsys.readouterr().out
    assert 1 == len(list(run.folder.rglob("events.out.tfevents*")))


@pytest.mark.parametrize(
    ("words", "output", "why"),
    [
        (["html"], "none/h.html", "No such file or directory"),
        (["html"], "", "Is a directory"),
        (["history"], "none/h.html", "No such file or directory"),
        (["history"], "", "Is a directory"),
        (["export"], "", "Is a directory"),
        (["export", "--format=csv"], "none/x.csv", "No such file or directory"),
        (["tensorboard"], "file", "Not a directory"),
    ],
)
def test_an_output_that_can_not_be_written_is_named_as_it_was_asked_for(
    run, tmp_path, capsys, words, output, why
):
    """One line with the reason: neither the temporary file's name nor the system's number."""
    (tmp_path / "file").touch()
    asked = tmp_path / output

    assert 1 == main([*words, str(run.folder), "-o", str(asked)])
    assert ("", f"error: {asked} can't be written: {why}\n") == capsys.readouterr()


@pytest.mark.parametrize(
    "words", [["export", "--format=csv"], ["export", "--format=prometheus"], ["tensorboard"]]
)
def test_what_has_no_place_for_notes_tells_them_beside_it(run, capsys, words):
    """A line that was cut off is named on standard error, as in the tables; a whole run has nothing there."""
    assert 0 == main([*words, str(run.folder)])
    whole, err = capsys.readouterr()
    assert "" == err
    with (run.folder / RECORDS).open("a") as file:
        file.write('{"variant": "mnist')

    assert 0 == main([*words, str(run.folder)])
    out, err = capsys.readouterr()
    assert whole == out
    assert err.startswith(f"note: left out: {run.folder / RECORDS}:2")
    assert 1 == len(err.splitlines())
