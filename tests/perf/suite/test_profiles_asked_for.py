"""Line profiles, phases and traces that a run was asked for, over a stack that answers at once."""

from __future__ import annotations

import pytest


def test_a_line_profile_that_the_stack_cannot_make_ends_the_run_before_its_first_launch(suite):
    """It was asked for: one sentence that names the Python and the remedy, not a failed launch of each variant."""
    words = ("perf", "--line-profile", "-k", "mnist_cnn-single-1cpu-fp32-native]")
    done = suite(*words, stack_facts={"line_profiler": False})

    assert 11 == done.status
    assert "has no line_profiler" in done.output
    assert "-m pip install line_profiler" in " ".join(done.output.split())
    assert not (done.run.folder / "records.jsonl").exists()
    with_it = suite(*words, stack_facts={"line_profiler": True})
    assert any(record.line_profiles for record in with_it.run.records())
    not_asked = suite("perf", "-k", "loader and mnist_cnn and cpu", stack_facts={"line_profiler": False})
    assert not_asked.run.records()
    assert not_asked.status == 0


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["one process", "two"])
def test_a_profile_is_taken_of_what_is_selected_and_planned_so(suite, words):
    """Its group is measured whole; the loader alone and data on the device are not profiled for nobody."""
    selected = ("perf", "--phases", "--profile=quick", "-k", "mnist_cnn-single-1cpu-fp32-native]", *words)
    run = suite(*selected).run
    found = [record for record in run.records() if record.phase_seconds is not None]

    assert ["mnist_cnn-single-1cpu-fp32-native"] == [record.variant for record in found]
    assert len({record.variant for record in run.records()}) > 1
    if not words:
        assert f"{len(run.records())} launches" in suite(*selected, "--plan").output
