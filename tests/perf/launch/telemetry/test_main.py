from __future__ import annotations

import json

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
