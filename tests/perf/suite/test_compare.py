"""Two stacks from end to end, as a user compares them."""

from __future__ import annotations

import json
import re

import pytest

ONE = ("-k", "mnist_cnn-single-1cpu-fp32-native]")
STEP = "test_a_step_takes_no_longer[compare@mnist_cnn-single-1cpu-fp32-native]"


def test_equal_stacks_pass_after_five_launches_a_side(suite):
    """Step and start-up pass, memory and stalls say why they are not judged, and the launches alternate A B, B A."""
    done = suite("perf", "--against=old/python", *ONE, "-rs", cores=2)
    assert 0 == done.status, done.output
    assert {"step_time": "pass", "start_up": "pass"} == {v.metric: v.verdict for v in done.run.verdicts()}
    launches = done.run.records()
    assert ["old", "new", "new", "old", "old", "new", "new", "old", "old", "new"] == [
        one.side for one in launches
    ]
    assert "nobody counts what torch allocates on a CPU" in done.output
    assert "windows of 400 steps, these have 60" in done.output


def test_a_slower_stack_fails_with_the_usual_exit_status(suite):
    """5 % beyond a margin of 2 %: a failure that names both sides, and status 1."""
    done = suite("perf", "--against=old/python", *ONE, steps={"mnist": 0.01, "@new": 0.0105})
    assert 1 == done.status, done.output
    (verdict,) = [v for v in done.run.verdicts() if v.test == STEP]
    assert ("fail", 7, 1.02) == (verdict.verdict, verdict.launches, verdict.limit)
    assert "The new side is slower by" in done.output


def test_a_faster_stack_passes_and_is_said_to_be_faster(suite):
    """A new stack may be as fast as it likes."""
    done = suite("perf", "--against=old/python", *ONE, steps={"mnist": 0.01, "@new": 0.005})
    assert 0 == done.status, done.output
    assert "faster" in done.output


def test_the_margin_is_what_was_asked_for(suite):
    """A slowdown of 5 % passes at a margin of 20 %."""
    done = suite("perf", "--against=old/python", "--margin=20%", *ONE, steps={"mnist": 0.01, "@new": 0.0105})
    assert 0 == done.status, done.output
    assert 1.2 == next(v.limit for v in done.run.verdicts() if v.test == STEP)


def test_a_stack_that_does_less_work_is_invalid(suite):
    """Fewer parameters or samples, another batch, a loss that stays: no step time is judged, however good it is."""
    for changes, words in (
        ({"parameters": 7}, "the network has 7 parameters with the new stack and 1,199,882 with the old one"),
        ({"samples": 60}, "of the new stack trains on 1 samples a step"),
        ({"effective": [{"first_batch": {"sample": "other"}}]}, "train on other batches, at the same seed"),
        ({"loss_last": 2.0}, "the loss falls in launch"),
    ):
        done = suite(
            "perf",
            "--against=old/python",
            "-k",
            "(same_work or step) and single-1cpu-fp32-native]",
            changes={"@new": changes},
            steps={"mnist": 0.01, "@new": 0.005},
        )
        assert 11 == done.status, done.output
        assert words in " ".join(done.output.split())
        assert {"work": "invalid", "step_time": "invalid"} == {
            v.metric: v.verdict for v in done.run.verdicts()
        }


def test_a_fail_tells_where_the_new_side_s_time_is(suite):
    """Not the old one's, which comes first in the group: what took its time there says nothing of the new one."""
    done = suite(
        "perf",
        "--against=old/python",
        *ONE,
        steps={"mnist": 0.01, "@new": 0.0125},
        phases={"@old": [{"data": 0.009, "forward": 0.001}], "@new": [{"data": 0.001, "forward": 0.0115}]},
    )
    assert 1 == done.status, done.output
    (verdict,) = [v for v in done.run.verdicts() if v.metric == "step_time"]
    assert "forward" == verdict.diagnosis["phase"]
    assert "The time is in forward: 11.5 ms of a step's 12.5 ms" in done.output


def test_losses_that_differ_by_more_than_rounding_fail(suite):
    """The step time stays judged: both train, and not to the same loss."""
    done = suite("perf", "--against=old/python", *ONE, changes={"@new": {"loss_last": 1.9}})
    assert 1 == done.status, done.output
    assert "loss_last is 1.9 with the new stack and 1 with the old one" in " ".join(done.output.split())
    assert "pass" == next(v.verdict for v in done.run.verdicts() if v.metric == "step_time")


def test_a_loader_that_takes_more_of_the_step_fails(suite):
    """The share is compared in points, from four members that are launched in turn."""
    steps = {"native@": 0.0104, "synthetic@": 0.01, "native@new": 0.0125}
    done = suite("perf", "--against=old/python", "-k", "larger_share", steps=steps)
    assert 1 == done.status, done.output
    (verdict,) = done.run.verdicts()
    assert ("fail", "loader_share", "share", 0.03) == (
        verdict.verdict,
        verdict.metric,
        verdict.unit,
        verdict.limit,
    )
    assert 0.16 == round(verdict.estimate, 2)


def test_scaling_that_got_worse_fails(suite):
    """The step of two processes over that of one, on each stack."""
    steps = {"1cpu": 0.01, "2cpu": 0.011, "ddp-2cpu-gloo-fp32-native-synthetic@new": 0.0125}
    done = suite("perf", "--against=old/python", "--margin=2%", "-k", "several_devices", steps=steps)
    assert 1 == done.status, done.output
    (verdict,) = done.run.verdicts()
    assert ("fail", "scaling", 1.03) == (verdict.verdict, verdict.metric, verdict.limit)
    assert "ddp-2cpu" in verdict.variant


def test_a_comparison_is_judged_again_from_its_records(suite):
    """Stored launches of both sides give the same verdicts."""
    first = suite("perf", "--against=old/python", *ONE, steps={"mnist": 0.01, "@new": 0.0105})
    again = suite("perf", f"--records={first.run.folder}", *ONE)
    assert 1 == again.status, again.output
    assert first.verdicts == again.verdicts


def test_what_does_not_go_together_is_a_usage_error(suite):
    """A comparison needs an old stack, and an old stack a comparison; a margin is a percentage."""
    for arguments, words in (
        (("--profile=compare",), "name the old one with --against"),
        (
            ("--profile=quick", "--against=x"),
            "--against belongs to the profiles compare, compare-full, compare-smoke",
        ),
        (("--against=x", "--margin=two"), "--margin two is no percentage such as 2%"),
        (("--against=x", "--margin=0%"), "is no percentage"),
        (("--old-launcher=fork",), "--old-launcher is of a comparison's old side: give --against=PYTHON too"),
        (("--stalls",), "--stalls belongs to the profiles compare"),
        (("--server-launches=3",), "expected 1 or more, with --launcher=fork"),
    ):
        done = suite("perf", *arguments)
        assert 4 == done.status
        assert words in done.output


def test_other_runs_hold_no_comparisons(suite):
    """Without --against no comparison is collected, and with it nothing else."""
    plain = suite("perf", "--collect-only", "-q").output
    compared = suite("perf", "--collect-only", "-q", "--against=x").output
    assert "test_throughput.py" in plain
    assert "test_compare" not in plain
    assert "test_compare.py" in compared
    assert not re.search(r"test_(throughput|ddp|loader)", compared)


def test_environment_holds_both_stacks(suite):
    """What was compared with what is in environment.json."""
    done = suite("perf", "--against=old/python", *ONE)
    environment = json.loads((done.run.folder / "environment.json").read_text(encoding="utf-8"))
    assert "fake" == environment["against"]["name"] == environment["stack"]["name"]


def test_what_moved_is_explained_after_it_was_judged(suite):
    """Extra launches of both sides that are never judged; a record, sentences in the failure, a section of the page."""
    done = suite(
        "perf",
        "--against=old/python",
        "-k",
        "step and mnist_cnn-single-1cpu-fp32-native]",
        steps={"mnist": 0.01, "@new": 0.0125},
        profiled=True,
    )
    assert 1 == done.status, done.output
    (line,) = (done.run.folder / "explanations.jsonl").read_text(encoding="utf-8").splitlines()
    explained = json.loads(line)
    assert [0.004, 0.0065] == [round(seconds, 4) for seconds in explained["phases"]["backward"]]
    assert "The phase that moved: backward +2.5 ms" in " ".join(done.output.split())
    assert "aten::convolution_backward (3 to 5.5 ms a step)" in " ".join(done.output.split())
    assert "Why it moved" in (done.run.folder / "report.html").read_text(encoding="utf-8")
    # Profiled launches are beside the judged ones: seven a side decided.
    (verdict,) = done.run.verdicts()
    assert 7 == verdict.launches


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ({"mnist": 0.01, "@new": 0.0125}, "moved the same way: matmul_fp32 -60% (one launch a side)."),
        ({"mnist": 0.0125, "@new": 0.01}, "moved the same way: matmul_bf16 +100% (one launch a side)."),
    ],
    ids=["slower", "faster"],
)
def test_the_machines_rates_are_told_where_they_moved_as_the_step_did(suite, steps, told):
    """Of those that the moved phase, backward, rests on: a loop of Python is none of them."""
    done = suite(
        "perf",
        "--against=old/python",
        "-k",
        "step and mnist_cnn-single-1cpu-fp32-native]",
        steps=steps,
        profiled=True,
        old_rates={"matmul_fp32": 2.5e9, "matmul_bf16": 0.5e9, "python_loop": 5e9},
    )

    assert told in " ".join(done.output.split())
    assert "python_loop" not in done.output.split("Why")[-1]


def test_what_did_not_move_is_explained_on_request_only(suite):
    """Launches that nobody needs are not taken."""
    for option, expected in (((), False), (("--why",), True)):
        done = suite(
            "perf",
            "--against=old/python",
            "-k",
            "step and mnist_cnn-single-1cpu-fp32-native]",
            *option,
            profiled=True,
        )
        assert 0 == done.status, done.output
        assert expected == (done.run.folder / "explanations.jsonl").exists()


def test_what_a_budget_has_no_time_for_is_skipped_with_its_reason(suite):
    """The most telling comparison is asked; nothing is left out silently."""
    done = suite("perf", "--against=old/python", "--budget=1s", "-k", "step and cpu", "-rs", takes=0.2)
    assert "not asked: " in done.output
    assert "of the budget of 1 s are left" in " ".join(done.output.split())
    # The first is asked in any case, and its launches take longer than the budget.
    assert (
        1
        <= len(done.run.verdicts())
        < len(suite("perf", "--against=old/python", "-k", "step and cpu").run.verdicts())
    )
    assert 4 == suite("perf", "--against=old/python", "--budget=soon").status


def test_what_differs_between_the_stacks_is_shown_before_anything_is_launched(suite):
    """In the terminal, and in the page's environment."""
    done = suite("perf", "--against=old/python", *ONE, old_facts={"torch": "2.9.1"})
    assert done.output.index("what differs between the two stacks") < done.output.index("test session starts")
    assert "2.9.1" in done.output
    page = (done.run.folder / "report.html").read_text(encoding="utf-8")
    assert "What differs between the two stacks" in page
