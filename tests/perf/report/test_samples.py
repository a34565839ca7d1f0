from __future__ import annotations

import json

from perf.report.samples import read_samples

GPU = {"index": 0, "uuid": "u", "power_watts": 300.5, "sm_clock_mhz": None}


def line(time, *gpus):
    return json.dumps({"time": time, "why": "tick", "host": {}, "gpus": list(gpus)})


def test_looks_are_read_in_time_and_null_stays_null(tmp_path, launch):
    """A look of each card at each time; what the sampler did not know is None, never 0."""
    folder = tmp_path / "launches" / "launch-001"
    folder.mkdir(parents=True)
    broken = [
        '{"host": "n", "interval_seconds": 1.0}',
        "{",
        "[1]",
        '{"time": "x", "gpus": []}',
        '{"time": 1, "gpus": [7]}',
    ]
    (folder / "telemetry.jsonl").write_text(
        "\n".join([line(2.0, GPU), *broken, line(1.0, GPU | {"power_watts": True})])
    )
    (found,) = read_samples([launch()], tmp_path)
    assert [(1.0, None), (2.0, 300.5)] == [(look.time, look.gauges["power_watts"]) for look in found.looks]
    assert (None, "0: u") == (found.looks[1].gauges["sm_clock_mhz"], found.looks[1].card)


def test_launches_without_samples_are_left_out(tmp_path, launch):
    """Neither a file without a look, nor a name that leads out of the run, gives samples."""
    (tmp_path / "telemetry.jsonl").write_text(line(1.0, GPU))
    folder = tmp_path / "launches" / "empty"
    folder.mkdir(parents=True)
    (folder / "telemetry.jsonl").write_text("")
    assert [] == read_samples([launch(launch=name) for name in ("..", "empty", "none")], tmp_path)
