"""The suite as a user runs it: the real tests, hooks and catalogue, over a stack that answers at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from perf import contract, records

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent / "helpers"
H100S = ROOT / "docs" / "measurements" / "2026-11-28-h100-whole"


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


def test_stored_launches_are_judged_again_to_the_same_verdicts(suite, tmp_path):
    """--records measures nothing, gives the same verdicts and says where they were measured."""
    first = suite("perf", cores=2, steps={"ddp-1cpu": 0.02})
    stored, verdicts = first.run.folder, first.verdicts
    again = suite("perf", "--records", str(first.results / "latest"), fail={"mnist": "measured again"})

    assert first.status == again.status == 1, again.output
    assert verdicts == again.verdicts
    assert not (again.run.folder / "launches").exists()
    assert str(stored) in (again.run.folder / "environment.json").read_text()


def test_line_profiles_of_stored_launches_go_into_the_new_run(suite):
    """The H100s' records are judged to the verdicts beside them, and their line profiles are printed and copied."""
    again = suite("perf", "--records", str(H100S))

    assert 0 == again.status, again.output
    stored = [json.loads(line) for line in (H100S / "verdicts.jsonl").read_text().splitlines()]
    # Tests that came later are judged too.
    assert {v["test"]: v["verdict"] for v in stored}.items() <= again.verdicts.items()
    assert len(list((H100S / "profiles").iterdir())) == len(list((again.run.folder / "profiles").iterdir()))
    assert "for data, target in train_loader" in again.output
    assert "is missing" not in again.output


def test_stored_launches_are_copied_once_by_two_workers(suite):
    """With -n 2 the new run holds each stored launch once."""
    first = suite("perf/test_ddp.py", cores=2)
    count = len(first.run.records())
    again = suite("perf/test_ddp.py", "--records", str(first.run.folder), "-n", "2")

    assert 0 == again.status, again.output
    assert count == len(again.run.records())


def test_a_line_that_was_cut_off_costs_one_launch_only(suite):
    """Of a run that was killed inside a line the whole launches are judged, and the broken line is said."""
    first = suite("perf/test_ddp.py", cores=2)
    file = first.run.folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]))
    again = suite("perf/test_ddp.py", "--records", str(first.run.folder))

    assert len(lines) - 1 == len(again.run.records())
    assert f"records.jsonl:{len(lines)}" in again.output


def test_a_failing_test_beside_the_perf_tests_is_not_green(suite, tmp_path):
    """pytest's own 1 stays 1 where no perf test failed."""
    failing = tmp_path / "test_beside.py"
    failing.write_text("def test_beside():\n    raise AssertionError\n")
    done = suite("perf/test_ddp.py", str(failing), cores=2)

    assert 1 == done.status, done.output


def test_a_smoke_run_is_judged_again_as_smoke(suite):
    """The profile of stored launches is theirs: inconclusive stays 0, and no group is missing."""
    first = suite("perf", "--profile", "smoke", cores=2)
    again = suite("perf", "--records", str(first.run.folder))

    assert 0 == again.status, again.output
    assert first.verdicts == again.verdicts


def test_launches_of_two_hosts_are_not_compared(suite):
    """A ratio over launches of different hosts is invalid, and says so."""
    done = suite("perf/test_ddp.py", cores=2, changes={"ddp-1cpu": {"host": ["another"]}})

    assert "invalid" == done.verdicts["test_ddp_overhead_at_world_size_1[ddp@mnist_cnn-cpu-1]"]
    assert "different hosts" in done.output


def test_what_the_stored_runs_lack_is_skipped_with_the_reason(suite):
    """A test whose launches are not there is skipped, not failed, and says which launches it lacks."""
    first = suite("perf/test_ddp.py", cores=2)
    again = suite("perf", "--records", str(first.run.folder), "-rs")

    assert 0 == again.status, again.output
    assert "holds no launch of mnist_cnn-single-1cpu-fp32-native+epochs" in again.output


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


def test_junit_holds_the_verdict_and_no_failure_for_inconclusive(suite):
    """Inconclusive is a skip with its reason in JUnit; the verdict's numbers are properties of the test."""
    done = suite("perf/test_ddp.py", cores=2, steps={"ddp-1cpu": 0.012})
    junit = (done.run.folder / "junit.xml").read_text()

    assert "<failure" not in junit
    assert 'message="inconclusive: ' in junit
    assert 'name="verdict" value="inconclusive"' in junit or 'value="inconclusive"' in junit


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


def test_bad_options_are_usage_errors(suite):
    """A folder that is no run, a time limit of 0 and no launches are refused with what was expected."""
    no_run = suite("perf", "--records", "docs")
    no_limit = suite("perf", "--launch-timeout", "0")

    nothing = suite("perf", "--launches", "0")

    assert (4, 4, 4) == (no_run.status, no_limit.status, nothing.status)
    assert "give 1 or more" in nothing.output
    assert "holds no records.jsonl" in no_run.output
    assert "give seconds above 0" in no_limit.output


def test_records_keep_to_the_contract(suite):
    """Every line of a run reads back as the record that it is."""
    done = suite("perf", "--profile", "smoke", cores=2)

    assert all(isinstance(r, contract.LaunchRecord) for r in done.run.records())
    assert all(isinstance(v, records.VerdictRecord) for v in done.run.verdicts())


def test_a_machine_has_a_card_whose_rates_are_measured_and_unreferenced(suite):
    """One launch of each group; a rate that the device lacks is skipped with its reason."""
    done = suite(
        "perf/test_machine.py", "-rs", "--device", "cuda", cores=8, gpus=2, rates={"matmul_tf32": None}
    )

    assert 0 == done.status, done.output
    assert ["machine-single-1gpu", "machine-ddp-2gpu-nccl"] == [r.variant for r in done.run.records()]
    metrics = {v.metric: v.unit for v in done.run.verdicts()}
    assert {"matmul_fp32", "host_to_device_pinned", "peer_copy", "all_reduce_unet3d"} < set(metrics)
    assert {"FLOP/s", "B/s", "1/s"} == set(metrics.values())
    assert {"unreferenced"} == set(done.verdicts.values())
    assert "matmul_tf32 can't be had here: the fake stack has none" in done.output


def test_smoke_looks_at_the_card_and_at_no_floor(suite):
    """Its ranks have one thread each, so its rates are not the machine's."""
    done = suite("perf/test_machine.py", "--profile", "smoke", cores=2)

    assert 0 == done.status, done.output
    assert "2 passed" in done.output
    assert not (done.run.folder / records.VERDICTS).exists()
    assert 2 == len(done.run.records())


def test_a_card_without_one_of_its_rates_is_not_whole(suite):
    """A rate that vanished is a fact, not a slow rate."""
    done = suite("perf/test_machine.py", "-k", "whole", cores=2, changes={"machine-single": {"rates": {}}})

    assert 1 == done.status, done.output


def test_portable_floors_are_judged_only_when_asked_for(suite):
    """Without the option there is no such test; with it, and no known system, a fraction is unreferenced."""
    plain = suite("perf", "-k", "portable or known_systems", "--collect-only", "-q", cores=8, gpus=2)
    asked = suite(
        "perf/test_portable.py",
        "-k",
        "mnist_cnn-single-1gpu-fp32-native]",
        "--portable-floors",
        cores=8,
        gpus=2,
    )

    assert "no tests collected" in plain.output
    assert 0 == asked.status, asked.output
    assert {"unreferenced"} == set(asked.verdicts.values())
    assert {"machine-single-1gpu", "mnist_cnn-single-1gpu-fp32-native"} < {
        r.variant for r in asked.run.records()
    }
    assert "No known system has a fraction of this variant" in asked.output
    assert "Of the machine's rates" in asked.output


FACTS = {
    "launch": "l",
    "rank": 1,
    "host": "<script>",
    "gpus": ["5fa5"],
    "status": "killed by signal 9 (SIGKILL)",
}


def test_who_failed_first_reaches_junit_and_the_report(suite):
    """Rank, host and GPU of a failed launch are properties of its tests and stand in the report, as text."""
    done = suite(
        "perf/test_ddp.py", cores=2, fail={"ddp-1cpu": "rank 1 was killed"}, facts={"ddp-1cpu": FACTS}
    )

    assert 11 == done.status, done.output
    junit = (done.run.folder / "junit.xml").read_text(encoding="utf-8")
    for name, value in (("rank", "1"), ("gpu", "5fa5"), ("host", "&lt;script&gt;")):
        assert f'<property name="failed_{name}" value="{value}"' in junit
    assert f'<property name="stackproof_run" value="{done.run.name}"' in junit
    report = (done.run.folder / "report.html").read_text(encoding="utf-8")
    assert "rank 1 on &lt;script&gt;, GPU 5fa5: killed by signal 9 (SIGKILL)" in report
    assert "No answer: " in report


def test_an_exact_fact_that_is_wrong_is_in_the_report(suite):
    """It leaves no judgement, so the report knows it from the outcomes of tests."""
    done = suite("perf/test_throughput.py", cores=2, changes={"mnist_cnn": {"loss_last": 9.0}})

    assert 1 == done.status, done.output
    report = (done.run.folder / "report.html").read_text(encoding="utf-8")
    assert re.search(r"No: \d+ exact facts? (is|are) wrong\.", report)
    outcomes = records.read_lines(done.run.folder / "tests.jsonl", records.OutcomeRecord)
    assert "failed" in {outcome.outcome for outcome in outcomes}


def test_two_workers_leave_one_report_and_each_test_once(suite):
    """Under xdist only the controller keeps outcomes and draws."""
    done = suite("perf/test_ddp.py", "perf/test_loader.py", "-n", "2", cores=2)

    outcomes = records.read_lines(done.run.folder / "tests.jsonl", records.OutcomeRecord)
    assert len(outcomes) == len({outcome.test for outcome in outcomes})
    assert 1 == done.output.count(f"report: {done.run.folder / 'report.html'}")


def test_a_report_that_cannot_be_drawn_does_not_fail_the_run(suite, tmp_path):
    """Without plotly there is a line that says so and how to try again; the exit status is the measurement's."""
    blocked = tmp_path / "blocked"
    (blocked / "plotly").mkdir(parents=True)
    (blocked / "plotly" / "__init__.py").touch()
    done = suite("perf/test_loader.py", "-o", f"pythonpath=. {blocked}", "--profile", "smoke", cores=2)

    assert 0 == done.status, done.output
    assert (
        "note: report.html could not be drawn (NoPlotly: the report's pictures need the package plotly"
        in done.output
    )
    assert not (done.run.folder / "report.html").exists()


def test_a_planted_fault_marks_every_launch_and_the_run(suite):
    """Environment and flags name it, so that no planted run can pass for an honest one."""
    outcome = suite(
        "perf/test_throughput.py", "--plant", "slow-rank", "-k", "loss_falls and mnist_cnn-ddp-2cpu", cores=2
    )
    environment = json.loads((outcome.run.folder / "environment.json").read_text())

    assert "slow-rank" == environment["options"]["plant"]
    assert outcome.run.records()
    assert all("planted: slow-rank" in record.flags for record in outcome.run.records())


def test_a_fault_can_be_planted_in_launches_only_and_must_be_known(suite):
    """An unknown name is a usage error with the nearest one; stored launches have no room for a fault."""
    unknown = suite("perf/test_throughput.py", "--plant", "slow-rnk")
    assert 4 == unknown.status
    assert "there is no fault 'slow-rnk' to plant; the nearest: slow-rank" in unknown.output
    first = suite("perf/test_throughput.py", "-k", "loss_falls and mnist_cnn-ddp-2cpu", cores=2)
    stored = suite("perf/test_throughput.py", "--plant", "slow-rank", "--records", str(first.run.folder))
    assert 4 == stored.status
    assert "--plant plants a fault in launches" in stored.output


def test_the_option_that_plants_is_not_shown_to_users(suite):
    """It is the self-check's own."""
    assert "--plant" not in suite("--help").output
