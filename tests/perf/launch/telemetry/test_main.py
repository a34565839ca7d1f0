from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perf.launch.telemetry import __main__ as telemetry
from perf.launch.telemetry.__main__ import in_words, main
from perf.launch.telemetry.reading import GpuReading, Header, HostReading, Sample


def test_a_node_is_described_without_a_launch(capsys):
    """Whoever runs it sees what can be read here, and what can't with the reason."""
    assert 0 == main(["--seconds", "0"])
    said = capsys.readouterr().out

    assert "cores allowed" in said
    assert "one look costs" in said


def test_a_commands_processes_are_followed_as_json(capsys):
    """Samples themselves are printed for scripts, until the command ends."""
    assert 0 == main(["--json", "--seconds", "60", "--interval", "0.05", "--", "true"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert "first" == lines[0]["why"]


def test_a_command_is_followed_to_its_end_whatever_the_default_time(monkeypatch, capsys):
    """Without --seconds only the command's end ends the looks, and the last one still sees what it took."""
    monkeypatch.setattr(telemetry, "SECONDS", 0.0)

    assert 0 == main(["--json", "--interval", "0.05", "--", "sleep", "0.3"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) > 2
    assert lines[-1]["host"]["cpu_seconds_total"] is not None


def test_an_end_is_seen_before_the_next_look_is_due():
    """A long interval delays nothing."""
    assert 0 == main(["--interval", "1e6", "--", "true"])


@pytest.mark.parametrize(("command", "status"), [("exit 7", 7), ("kill -TERM $$", 128 + 15)])
def test_the_status_is_that_of_the_command(command, status):
    """A command that fails does so in a script too; a signal is told as a shell does."""
    assert status == main(["--", "sh", "-c", command])


def test_a_command_goes_on_when_the_looking_is_over():
    """--seconds ends the looks; the command ends by itself, with its own status."""
    assert 3 == main(["--seconds", "0", "--", "sh", "-c", "sleep 0.2; exit 3"])


def test_what_a_command_prints_is_not_among_the_samples():
    """Every line of standard output is JSON: the command's own go to standard error."""
    words = [sys.executable, "-m", "perf.launch.telemetry", "--json", "--", "echo", "hello"]
    done = subprocess.run(
        words, cwd=Path(__file__).parents[4], capture_output=True, text=True, check=False, timeout=120
    )

    assert (0, "hello\n") == (done.returncode, done.stderr)
    assert "first" == json.loads(done.stdout.splitlines()[0])["why"]


@pytest.mark.parametrize(
    ("name", "status", "why"), [("nowhere", 127, "No such file or directory"), ("", 126, "Permission denied")]
)
def test_a_command_that_can_not_be_started_is_one_line(tmp_path, capsys, name, status, why):
    """It is named with the reason, with the status that a shell has for it."""
    command = str(tmp_path / name)

    assert status == main(["--", command])
    assert ("", f"error: {command} can't be started: {why}\n") == capsys.readouterr()


@pytest.mark.parametrize(
    "words",
    [
        *(f"--interval={value}" for value in ("nan", "inf", "0", "-1", "1e300")),
        *(f"--seconds={value}" for value in ("nan", "inf", "-1", "1e300")),
    ],
)
def test_times_that_are_none_are_refused(words, capsys):
    """What is no time that can be waited is a mistake in the command."""
    with pytest.raises(SystemExit, match="2"):
        main([words])
    assert f"error: {words.partition('=')[0]} must be" in capsys.readouterr().err


def test_a_card_is_told_with_its_units_and_gaps_as_question_marks():
    """An unread value is a question mark, never 0; a hostile name is made harmless."""
    gpu = GpuReading("u0", 0, "H\x1b[31m", power_watts=300.0, throttle_seconds_total={"thermal": 0.5})
    header = Header("n1", "nvml", problems={"PowerUsage": "Not\x07 Supported"})
    said = "\n".join(in_words(header, [Sample(0.0, "first", HostReading(), [gpu])]))

    assert "power 300 W of ?" in said
    assert "thermal 0.500 s" in said
    assert "held down now by: ?" in said
    assert "can't be read: PowerUsage: Not\\x07 Supported" in said
    assert "\x1b" not in said
