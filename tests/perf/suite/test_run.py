"""The suite as a user runs it: the real tests, hooks and catalogue, over a stack that answers at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_a_healthy_smoke_run_ends_with_0_and_leaves_every_file(suite):
    """Smoke judges one pair, looks at the rest, says that inconclusive counts as 0, and writes the files of a run."""
    done = suite("perf", "--profile", "smoke", cores=2)

    assert 0 == done.status, done.output
    assert "smoke is too short to decide" in done.output
    for name in (
        "environment.json",
        "records.jsonl",
        "verdicts.jsonl",
        "tests.jsonl",
        "events.jsonl",
        "junit.xml",
        "report.html",
    ):
        assert (done.run.folder / name).is_file()
    metrics = {v.metric for v in done.run.verdicts()}
    judged = {"throughput", "loader_share", "ddp_overhead", "first_epoch_penalty"}
    assert {*judged, "first_epoch_excess", "ddp_knob", "all_reduces"} == metrics
    variants = Counter(r.variant for r in done.run.records())
    assert 5 == variants["mnist_cnn-single-1cpu-fp32-native-synthetic"] - 1
    assert 1 == variants["mnist_cnn-ddp-2cpu-gloo-fp32-native"]


def test_a_ratio_beyond_its_limit_fails_with_1_and_says_how_much(suite):
    """DDP at twice the time of one process fails after 7 launches a side, with ratio, limit and launches in words."""
    done = suite("perf/test_ddp.py", cores=2, steps={"ddp-1cpu": 0.02})

    assert 1 == done.status, done.output
    assert "fail" == done.verdicts["test_ddp_overhead_at_world_size_1[ddp@mnist_cnn-cpu-1]"]
    message = re.search(r"step of mnist_cnn-ddp-1cpu.*limit 1\.2; 7 launches a side", done.output)
    assert message, done.output


def test_a_launch_that_gives_no_record_ends_with_11_and_the_other_tests_go_on(suite):
    """The error names what the launcher said; tests of the other members of the group are judged all the same."""
    done = suite("perf/test_ddp.py", cores=2, fail={"ddp-2cpu": "rank 1 was killed by signal 9 (SIGKILL)"})

    assert 11 == done.status, done.output
    assert "rank 1 was killed by signal 9 (SIGKILL)" in done.output
    assert "Traceback" not in done.output
    assert {"test_ddp_overhead_at_world_size_1[ddp@mnist_cnn-cpu-1]": "pass"} == done.verdicts


def test_an_unfit_machine_ends_with_11(suite):
    """An invalid launch makes the verdict invalid, with its reason."""
    done = suite("perf/test_ddp.py", cores=2, invalid={"ddp-2cpu": "the clock was throttled"})

    assert 11 == done.status, done.output
    assert "invalid" == done.verdicts["test_ddp_overhead_in_weak_scaling[ddp@mnist_cnn-cpu-2]"]
    assert "the clock was throttled" in done.output
    assert "1 invalid" in done.output


def test_a_value_on_its_limit_ends_with_10(suite):
    """On the limit itself the answer is inconclusive, and the run says so."""
    done = suite("perf/test_ddp.py", cores=2, steps={"ddp-1cpu": 0.012})

    assert 10 == done.status, done.output
    assert "inconclusive" == done.verdicts["test_ddp_overhead_at_world_size_1[ddp@mnist_cnn-cpu-1]"]
    assert "1 inconclusive" in done.output


def test_a_gpu_run_without_gpus_judges_nothing_and_ends_with_12(suite):
    """Every test is skipped with what it needs; nothing judged is not a pass."""
    done = suite("perf", "--device", "cuda", "-rs", cores=2)

    assert 12 == done.status, done.output
    assert "needs 2 GPUs, 0 here" in done.output
    assert "Nothing was judged" in done.output


def test_a_loss_that_does_not_fall_fails(suite):
    """An exact fact is an ordinary failure."""
    done = suite("perf/test_throughput.py", cores=2, changes={"single-1cpu-fp32-native": {"loss_last": 3.0}})

    assert 1 == done.status, done.output
    assert "test_loss_falls" in done.output


def test_require_references_turns_unreferenced_into_a_failure(suite):
    """Without the option a number without reference is listed and the run is 0; with it, it fails."""
    arguments = ("perf/test_throughput.py", "-k", "floor")
    plain = suite(*arguments, cores=2)
    strict = suite(*arguments, "--require-references", cores=2)

    assert (0, 1) == (plain.status, strict.status), plain.output + strict.output
    assert "unreferenced" in plain.output


def test_faster_than_possible_is_invalid(suite):
    """A share of -30 % means that the modes did not do the same work."""
    done = suite("perf/test_loader.py", cores=2, steps={"native-synthetic": 0.013})

    assert 11 == done.status, done.output
    assert "invalid" == done.verdicts["test_loader_share_is_within_its_limit[loader@mnist_cnn-cpu-1]"]


def test_oversubscribed_variants_run_and_are_never_judged(suite):
    """A variant with more workers than cores is flagged and its number is not held against anything."""
    done = suite("perf/test_ddp.py", cores=2, changes={"ddp-1cpu": {"flags": ["oversubscribed"]}})

    assert "unreferenced" == done.verdicts["test_ddp_overhead_at_world_size_1[ddp@mnist_cnn-cpu-1]"]
    assert "oversubscribed" in done.output


def test_a_short_mark_expression_selects(suite):
    """-m "gpus(2) and backend(nccl)" selects the tests that need just that."""
    done = suite("perf", "--collect-only", "-q", "-m", "gpus(2) and backend(nccl)")

    selected = [line for line in done.output.splitlines() if "::" in line]
    assert selected
    known = ("2gpu", "gpu-2", "links@machine-gpu", "talk@mnist_cnn-gpu", "dp@mnist_cnn-gpu-ddp")
    assert all(any(part in line for part in known) for line in selected), selected


def test_collecting_makes_no_run_and_imports_no_torch(suite, tmp_path):
    """--collect-only is only that: no folder, no probe of a stack, no torch in the process."""
    probe = tmp_path / "probe.py"
    probe.write_text(
        "import sys, pytest\n"
        "status = pytest.main(['perf', '--collect-only', '-q', '-p', 'no:cacheprovider', '--results', sys.argv[1]])\n"
        "assert 'torch' not in sys.modules and 'rich' not in sys.modules\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, str(probe), str(tmp_path / "none")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert not (tmp_path / "none").exists()


def test_two_workers_measure_every_group_once(suite):
    """With -n 2 a group is one worker's, launches have distinct names, and the outcomes and status are the same.

    A test that holds one group against another takes the other's launches where it runs, whoever has them too.
    """
    one = suite("perf", cores=4)
    serial = one.verdicts
    two = suite("perf", "-n", "2", cores=4)

    assert one.status == two.status, two.output
    assert serial == two.verdicts
    launches = two.run.records()
    assert (
        len(launches)
        == len({r.launch for r in launches})
        == len(list((two.run.folder / "launches").iterdir()))
    )
    held_against = {"rates@machine-cpu", "tiny@resnet50_tiny-cpu"}
    by_group = {(r.group, r.launch.split("-")[0]) for r in launches}
    once = [group for group, _ in by_group if group not in held_against]
    assert len(once) == len(set(once))
    assert {"gw0", "gw1"} == {worker for _, worker in by_group}
    assert "samples/s" in two.output, "progress is drawn by the controller"


def test_a_failing_test_beside_the_perf_tests_is_not_green(suite, tmp_path):
    """pytest's own 1 stays 1 where no perf test failed."""
    failing = tmp_path / "test_beside.py"
    failing.write_text("def test_beside():\n    raise AssertionError\n")
    done = suite("perf/test_ddp.py", str(failing), cores=2)

    assert 1 == done.status, done.output


def test_a_verdict_does_not_depend_on_what_else_is_selected(suite):
    """A test that escalates adds launches for itself only: the others' verdicts and launches stay as they are alone."""
    settings = {"cores": 2, "steps": {"ddp-1cpu": 0.012, "ddp-2cpu": 0.0155}}
    together = suite("perf/test_ddp.py", **settings)
    both = {v.test: (v.verdict, v.estimate, v.launches) for v in together.run.verdicts()}
    for name in ("world_size_1", "weak_scaling"):
        alone = suite("perf/test_ddp.py", "-k", name, **settings)
        for v in alone.run.verdicts():
            assert (v.verdict, v.estimate, v.launches) == both[v.test]


def test_x_does_not_stop_on_inconclusive(suite):
    """-x is for failures: an inconclusive verdict does not end the run."""
    done = suite("perf/test_ddp.py", "-x", cores=2, steps={"ddp-1cpu": 0.012})

    assert 10 == done.status, done.output
    assert 2 == len(done.verdicts)


@pytest.mark.parametrize(
    ("changes", "test", "words"),
    [
        # Source 003 multiplied steps by the whole batch: 12.5 % too many samples on 288 GPUs.
        ({"samples": 10**6}, "test_window_holds_the_samples_that_were_delivered", "assert"),
        # Source 003 seeded every rank alike, so that all saw the same crops.
        (
            {"effective": [{"first_batch": {"sample": "one"}}] * 2},
            "test_no_two_ranks_train_on_the_same_samples",
            "are their seeds the same?",
        ),
        ({"losses_finite": False}, "test_loss_falls", "assert"),
    ],
)
def test_the_sources_defects_are_caught(suite, changes, test, words):
    """Each planted in a record of two ranks, and found by the test that is there for it."""
    arguments = ("perf/test_throughput.py", "--profile", "smoke", "-k", f"{test} and mnist_cnn and 2cpu")
    done = suite(*arguments, cores=2, changes={"mnist_cnn-ddp-2cpu": changes})

    assert 1 == done.status, done.output
    assert words in done.output


def test_what_a_stack_lacks_is_skipped_with_its_reason(suite):
    """'Not available here' is an outcome: the tests of that variant are skipped, the others of its group go on."""
    reason = "not available here: loader dali: this stack has no nvidia.dali"
    arguments = ("perf/test_bound.py", "--profile", "full", "-k", "alone and mnist_cnn", "-rs")
    done = suite(*arguments, gpus=1, cores=8, unavailable={"mnist_cnn-single-1gpu-fp32-dali": reason})

    assert 0 == done.status, done.output
    assert reason in done.output
    assert "Traceback" not in done.output
    assert {"mnist_cnn-single-1gpu-fp32-resident-io", "mnist_cnn-single-1gpu-fp32-batched-io"} <= {
        r.variant for r in done.run.records()
    }


def test_every_judged_group_gets_the_launches_that_were_asked_for(suite):
    """--launches takes the place of the profile's number, in every judged group."""
    done = suite("perf/test_ddp.py", "--profile", "smoke", "--launches", "2", cores=2)

    counts = Counter(r.variant for r in done.run.records())
    assert {2} == set(counts.values()), counts


def test_the_ladder_says_what_each_rung_gains(suite):
    """A rung's verdict holds its gain with an interval, or why there is none."""
    done = suite(
        "perf/test_ladder.py",
        "--profile",
        "full",
        "--launches",
        "5",
        "-k",
        "slow_a_step and mnist_cnn and ladder",
        gpus=1,
        cores=8,
        steps={"bf16": 0.004, "fused": 0.025},
    )
    found = {v.test: v for v in done.run.verdicts()}
    bf16 = found["test_a_rung_does_not_slow_a_step[ladder@mnist_cnn-gpu-bf16]"]
    fused = found["test_a_rung_does_not_slow_a_step[ladder@mnist_cnn-gpu-fused]"]
    tf32 = found["test_a_rung_does_not_slow_a_step[ladder@mnist_cnn-gpu-tf32]"]

    assert "pass" == bf16.verdict
    assert re.match(r"It is 2\.5\d* times as fast \(2\.\d+ to 2\.\d+\)\.", bf16.reasons[0])
    assert "fail" == fused.verdict
    assert "times as fast" in tf32.reasons[0]
    assert "changes nothing" in tf32.reasons[0] or "not beyond noise" in tf32.reasons[0]


def test_mixed_precision_at_224_is_judged_and_its_use_of_the_peak_told(suite):
    """The precision by which cards are compared is a rung of its own there, and its share of the peak is told."""
    words = ("--profile", "full", "--launches", "5", "-k", "mixed or (peak and resnet50_224 and bf16)")
    done = suite("perf", *words, gpus=1, cores=8, steps={"bf16": 0.003})
    found = {v.metric: v for v in done.run.verdicts() if "bf16" in v.variant}

    assert 0 == done.status, done.output
    assert {"rung", "model_flop_utilization"} == set(found)
    assert "pass" == found["rung"].verdict


def test_bad_options_are_usage_errors(suite):
    """A folder that is no run, a time limit of 0 and no launches are refused with what was expected."""
    no_run = suite("perf", "--records", "docs")
    no_limit = suite("perf", "--launch-timeout", "0")

    nothing = suite("perf", "--launches", "0")

    assert (4, 4, 4) == (no_run.status, no_limit.status, nothing.status)
    assert "give 1 or more" in nothing.output
    assert "holds no records.jsonl" in no_run.output
    assert "give seconds above 0" in no_limit.output
