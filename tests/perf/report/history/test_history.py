"""Months of runs: reading, nominating, drawing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launch_records import record_of

from perf import contract
from perf.catalogue import GROUPS
from perf.report.__main__ import main
from perf.report.history.command import gather_history
from perf.report.history.csvfile import CsvError, read_csv
from perf.report.history.figures import MOST_POINTS
from perf.report.history.nominations import days_of, nominate
from perf.report.history.observations import Observation, series_of
from perf.report.history.runs import find_runs, read_run

FACTS = Path(__file__).parents[3] / "data" / "throughput_history.csv"


def test_the_incident_on_puhti_is_nominated_and_nothing_else():
    """Mahti's new stack and a handful of per cent on quiet days are no incident; the line without a rate is named."""
    observations, notes = read_csv(FACTS)
    series = series_of(observations)
    (day,) = days_of(nominate(series), series)
    assert ("2023-05-08", "puhti") == (day.day, day.system)
    moved = {one.series.variant for one in day.nominated if one.series.quantity.key == "throughput"}
    assert {
        "DDP, synthetic, 8 GPUs",
        "DDP, Imagenet data, 8 GPUs",
        "DeepSpeed, synthetic data, 4 GPUs",
        "DeepSpeed, synthetic data, 8 GPUs",
        "Horovod, synthetic, 8 GPUs",
    } == moved
    assert "what lies between the devices" in day.sentence
    (note,) = notes
    assert "images_per_s is 'ERROR'" in note


def test_efficiency_and_loader_share_come_from_the_same_day():
    """2420.71 / (8 x 325.95) on Puhti, and 1 - 2431.23 / 2420.71."""
    observations, _ = read_csv(FACTS)

    first = [one for one in observations if one.system == "puhti" and one.stack.startswith("PyTorch 1.11")]
    found = {one.variant: one for one in first}

    assert 2420.71 / (8 * 325.95) == pytest.approx(found["DDP, synthetic, 8 GPUs"].efficiency)
    assert 1 - 2431.23 / 2420.71 == pytest.approx(found["DDP, Imagenet data, 8 GPUs"].loader_share)
    assert found["DDP, synthetic, 1 GPU"].efficiency is None


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("\u0663,2026-11-27,5", "gpus is '\u0663', expected a whole number of at least 1"),
        ("1_0,2026-11-27,5", "gpus is '1_0', expected a whole number of at least 1"),
        ("0,2026-11-27,5", "gpus is '0', expected a whole number of at least 1"),
        ("four,2026-11-27,5", "gpus is 'four', expected a whole number"),
        ("4,2026-13-27,5", "date is '2026-13-27', expected a day such as 2026-11-27"),
        ("4,yesterday,5", "date is 'yesterday', expected a day"),
        ("4,2026-11-27,1_0", "images_per_s is '1_0', expected a number above 0"),
        ("4,2026-11-27,-5", "images_per_s is '-5', expected a number above 0"),
        ("4,2026-11-27,nan", "images_per_s is 'nan', expected a number above 0"),
        ("4,2026-11-27,1e999", "images_per_s is '1e999', expected a number above 0"),
        ("4,2026-11-27", "the line ends before the column images_per_s"),
    ],
)
def test_a_line_that_holds_nothing_names_its_column_and_what_was_expected(tmp_path, cells, words):
    """Its note is in the table's own words, not in Python's; the other lines are read."""
    path = tmp_path / "x.csv"
    head = "benchmark,framework,system,gpus,date,images_per_s"
    path.write_text(f"{head}\nDDP,a,s,{cells}\nDDP,a,s,4,2026-11-27,5.5e2\n", encoding="utf-8")

    observations, notes = read_csv(path)

    assert [550.0] == [one.throughput for one in observations]
    (note,) = notes
    assert note.startswith(f"{path}:2: left out: {words}")


def test_a_csv_that_is_no_utf_8_says_so(tmp_path):
    """With the file's name, and what to do."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"date,\xff\n")
    with pytest.raises(CsvError, match=r"x\.csv: is no UTF-8 .*; save it as UTF-8"):
        read_csv(path)


def test_a_csv_without_the_columns_says_which(tmp_path):
    """With file and line."""
    path = tmp_path / "x.csv"
    path.write_text("benchmark,date\n", encoding="utf-8")
    with pytest.raises(CsvError, match="no column framework, system, gpus, images_per_s"):
        read_csv(path)


def write_run(folder: Path, rate: float, when: float, **changes: object) -> None:
    """Write a run of a group's three members."""
    folder.mkdir(parents=True)
    lines = []
    for member in GROUPS["ddp@mnist_cnn-cpu"].members:
        one = record_of(member, started_at=when, samples_per_second=rate, stack={"torch": "2.9"}, **changes)
        lines.append(contract.encode(one))
    (folder / "records.jsonl").write_text("\n".join([*lines, "{cut"]) + "\n", encoding="utf-8")
    (folder / "environment.json").write_text(json.dumps({"cpu_model": "EPYC", "stack": {}}), encoding="utf-8")


def test_runs_are_read_with_their_ratios(tmp_path):
    """Two ranks at the same global rate are half as efficient; a broken line is named and costs nothing else."""
    write_run(tmp_path / "results" / "a", 100.0, 1.6e9)
    (tmp_path / "results" / "latest").symlink_to("a")
    notes: list[str] = []
    (run,) = find_runs([tmp_path / "results", tmp_path / "results" / "a"])
    found = {one.variant: one for one in read_run(run, notes)}
    assert 3 == len(found)
    two = found["mnist_cnn-ddp-2cpu-gloo-fp32-native-synthetic"]
    assert (0.5, "EPYC", "torch 2.9", "a") == (two.efficiency, two.system, two.stack, two.run)
    assert 1 == len(notes)


@pytest.mark.parametrize(
    "changes",
    [
        {"valid": False},
        {"side": "old"},
        {"phase_seconds": [{}]},
        {"flags": ["planted: x"]},
        {"plan": "epochs"},
    ],
)
def test_launches_that_tell_no_speed_are_left_out(tmp_path, changes):
    """A fault that was planted, a profile, or the old side of a comparison is no history of the system."""
    write_run(tmp_path / "a", 100.0, 1.6e9, **changes)
    assert [] == read_run(tmp_path / "a", [])


def test_the_page_is_one_file_with_hostile_names_escaped(tmp_path, capsys):
    """It loads nothing, shows what is nominated, and runs no foreign script."""
    csv = tmp_path / "x.csv"
    text = FACTS.read_text(encoding="utf-8").replace("puhti", "<script>alert(1)</script>")
    csv.write_text(text, encoding="utf-8")
    assert 0 == main(["history", "--csv", str(csv), "-o", str(tmp_path / "h.html")])
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "default-src &#39;none&#39;" in page
    assert "1 day nominated" in page
    assert "2023-05-08" in capsys.readouterr().out


def test_what_is_no_history_ends_with_its_status(tmp_path, capsys):
    """2, and a sentence."""
    assert 2 == main(["history", str(tmp_path)])
    assert "no launch of these runs" in capsys.readouterr().err
    for words in ([], ["--csv"]):
        assert 2 == main(["history", *words, str(tmp_path / "none")])
        assert (
            f"error: {tmp_path / 'none'} can't be read: No such file or directory\n"
            == capsys.readouterr().err
        )
    assert 2 == main(["history", "--csv", str(tmp_path)])
    assert f"error: {tmp_path} can't be read: Is a directory\n" == capsys.readouterr().err


def test_long_series_are_drawn_as_medians():
    """Ten thousand runs are few points, and a change is still nominated where it is."""
    many = [
        Observation(
            3600.0 * place,
            "s",
            "t",
            "v",
            "x",
            100.0 + place % 7 - (10.0 if place > 8000 else 0.0),
            str(place),
        )
        for place in range(10_000)
    ]
    history = gather_history(many)
    (figure,) = [figure for section in history.sections for figure in section.figures]
    assert len(figure.series[0].x) <= MOST_POINTS
    assert any(abs(one.nomination.place - 8001) <= 2 for day in history.days for one in day.nominated)
