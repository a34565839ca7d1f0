from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.report.summary import FALSE_FAIL_PER_JUDGEMENT, Account, launch_words, summarize
from perf.verdict.looks import LOOKS, rank_level


def rows(*records):
    """Return the rows of variants of some launches."""
    return summarize(records, []).variants


def test_a_row_holds_medians_over_the_launches(launch):
    """Step and rate are medians of launches, the spread is that of the logarithms, the memory is the largest."""
    steps = [0.075, 0.076, 0.080]
    (row,) = rows(
        *(
            launch(
                launch=str(place),
                median_step_seconds=step,
                samples_per_second=64 / step,
                peak_memory_bytes=[{"cuda:0": place * 2**20}],
            )
            for place, step in enumerate(steps)
        )
    )
    assert (3, 0, 0.076, 64 / 0.076) == (
        row.launches,
        row.invalid,
        row.median_step_seconds,
        row.samples_per_second,
    )
    assert 2 * 2**20 == row.peak_memory_bytes
    assert math.isclose(statistics.stdev(map(math.log, steps)), row.spread)


@pytest.mark.parametrize(("device", "told"), [("cuda", False), ("cpu", True)])
def test_a_loader_on_the_gpu_is_not_waited_for(launch, device, told):
    """The host waits for room in CUDA's queue there; on a CPU the same loader makes its batches itself."""
    record = launch(loader="resident", device=device)
    assert told is (record.wait_share is not None)


def test_batches_that_are_there_are_not_waited_for(launch):
    """Nothing was noted of data that lie on the device."""
    assert launch(mode="synthetic").wait_share is None


@pytest.mark.parametrize(
    ("waits", "expected"), [((0.49, 0.0), 0.1), ((0.51, 0.0), 0.25), ((0.0, 0.51), 0.25), ((), 0.1)]
)
def test_a_launch_that_waits_for_its_data_is_told_by_its_mean_step(launch, waits, expected):
    """Beyond a quarter of the window of any rank: batches come in groups, and a median step waits for none of them."""
    record = launch(
        median_step_seconds=0.1,
        step_seconds=[[0.1] * 8, [0.1] * 7 + [1.3]],
        window_seconds_per_rank=[2.0, 2.0],
        wait_seconds=list(waits),
    )

    assert expected == rows(record)[0].median_step_seconds
    assert launch_words(record).startswith("250 ms a step" if expected > 0.1 else "100 ms a step")


def test_the_wait_share_is_that_of_the_rank_that_waits_most(launch):
    """Rank 0 waits 19 ms of 1.9 s, rank 1 waits 40 ms of 2 s: 2 %."""
    (row,) = rows(launch())
    assert math.isclose(0.02, row.wait_share)


def test_an_invalid_launch_is_counted_and_left_out(launch):
    """Its numbers enter nothing; its reasons are counted; flags of all launches are."""
    (row,) = rows(
        launch(flags=["unsteady"]),
        launch(
            valid=False,
            median_step_seconds=9.0,
            samples_per_second=1.0,
            reasons=["too hot"],
            flags=["unsteady"],
        ),
        launch(valid=False, peak_memory_bytes=[{"cuda:0": 2**40}], reasons=["too hot", "too few cores"]),
    )
    assert (1, 2) == (row.launches, row.invalid)
    assert (0.0751, 853.0, 3 * 2**29) == (
        row.median_step_seconds,
        row.samples_per_second,
        row.peak_memory_bytes,
    )
    assert {"too hot": 2, "too few cores": 1} == row.reasons
    assert "2 invalid, 2 unsteady" == row.remarks


def test_what_was_not_measured_is_none(launch):
    """An audit has no steps, a CPU no device memory, one launch no spread, a row without valid launches nothing."""
    audit = launch(
        plan="audit",
        median_step_seconds=0.0,
        samples_per_second=0.0,
        wait_seconds=[],
        window_seconds_per_rank=[0.0],
        peak_memory_bytes=[{}],
    )
    for (row,) in (rows(audit), rows(launch(valid=False))):
        assert (None,) * 5 == (
            row.median_step_seconds,
            row.spread,
            row.samples_per_second,
            row.wait_share,
            row.peak_memory_bytes,
        )
    assert rows(launch())[0].spread is None


@pytest.mark.parametrize(
    "change",
    [
        {"group": "other"},
        {"variant": "other"},
        {"plan": "epochs"},
        {"mode": "synthetic"},
        {"stack": {"torch": "2.7.0"}},
        {"line_profiles": ["train-rank-0.lprof"]},
        {"phase_seconds": [{"forward": [0.1]}]},
    ],
)
def test_launches_that_must_not_be_mixed_are_rows_of_their_own(launch, change):
    """Another group, variant, plan, mode or stack, and launches under a profiler, never share a median."""
    found = rows(launch(), launch(**change), launch(), launch(**change))
    assert [2, 2] == [row.launches for row in found]
    assert 1 == len({row.profiled for row in found}) or [False, True] == [row.profiled for row in found]


def test_rows_stand_by_group_in_order_of_appearance(launch):
    """Rounds interleave the members; the rows do not."""
    found = rows(
        *(
            launch(group=group, variant=variant)
            for group, variant in [("b", "2"), ("a", "1"), ("b", "1"), ("a", "1"), ("b", "2")]
        )
    )
    assert [("b", "2", 2), ("b", "1", 1), ("a", "1", 2)] == [
        (row.group, row.variant, row.launches) for row in found
    ]


def test_a_verdict_row_has_its_texts(verdict):
    """Subject, estimate with bounds, limit with the same decimals, and what would have been found."""
    (row,) = summarize([], [verdict()]).verdicts
    assert "resnet50-ddp-2gpu-nccl-bf16-native8 against resnet50-dp-2gpu-bf16-native8" == row.subject
    assert ("1.31 [1.24–1.38] ratio", "1.00", "4.0 %") == (
        row.estimate_text,
        row.limit_text,
        row.detectable_text,
    )


def test_a_share_is_told_in_points(verdict):
    """For shares the smallest detectable change is a difference, not a ratio."""
    (row,) = summarize([], [verdict(metric="loader share", unit="", against="", detectable=0.04)]).verdicts
    assert "4.0 points" == row.detectable_text
    assert row.variant == row.subject


def test_the_budget_counts_what_could_have_failed_by_chance(verdict):
    """Exact facts and unreferenced measurements can't fail because of noise; all other judgements count."""
    account = summarize(
        [],
        [
            verdict(verdict="pass"),
            verdict(verdict="fail"),
            verdict(verdict="inconclusive"),
            verdict(verdict="invalid"),
            verdict(verdict="unreferenced"),
            verdict(verdict="fail", statistical=False),
        ],
    ).account
    assert 4 == account.judgements
    assert math.isclose(4 * 2.2e-4, account.false_fail)
    assert "4 judgements, chance of a false fail in a clean run at most 0.09 %" == account.budget_text
    assert "verdicts: 1 pass, 2 fail, 1 inconclusive, 1 invalid, 1 unreferenced" == account.verdicts_text


def test_the_price_of_a_judgement_is_the_sum_of_its_looks():
    """0.022 % is what the looks of perf.verdict add up to: the gross look, and the exact level of each fail rank."""
    levels = [
        2**-14 if look.gross else rank_level(look.launches, look.launches, look.fail_rank or 0)
        for look in LOOKS
    ]
    # The two exact levels are 6.5e-5 and 9.5e-5: rounded as the rules print them.
    assert math.isclose(sum(levels), FALSE_FAIL_PER_JUDGEMENT, rel_tol=0.02)


@pytest.mark.parametrize(("expected", "judgements"), [(False, 45), (True, 46)])
def test_more_judgements_than_promised_are_warned_of(verdict, expected, judgements):
    """Up to 45 judgements a clean run alarms in at most 1 of 100; beyond that the line says so."""
    account = summarize([], [verdict()] * judgements).account
    assert expected == account.too_many
    assert expected == ("WARNING" in account.budget_text)


@given(st.integers(1, 10_000))
def test_at_most_is_never_rounded_down(judgements):
    """The percentage that is printed is an upper bound, and not more than a hundredth of a percent above it."""
    bound = min(1.0, judgements * FALSE_FAIL_PER_JUDGEMENT)
    text = Account(judgements, bound, {}).budget_text
    printed = float(text.partition("at most ")[2].partition(" %")[0])
    assert 100 * bound - 1e-9 <= printed <= 100 * bound + 0.01


def test_a_run_without_judgements_has_an_account(verdict):
    """Nothing judged, or exact facts only, is said in words."""
    assert "verdicts: none" == summarize([], []).account.verdicts_text
    assert summarize([], [verdict(statistical=False)]).account.budget_text.startswith(
        "no judgement by statistics"
    )


def test_unknown_verdicts_are_counted_last(verdict):
    """A word that a newer suite may write is not lost."""
    account = summarize([], [verdict(verdict="maybe"), verdict(verdict="pass")]).account
    assert "verdicts: 1 pass, 1 maybe" == account.verdicts_text


def test_the_data_of_each_workload_are_told_once(launch):
    """Real and generated data are not the same measurement: the header says which it was."""
    known = {
        "description": "generated digits",
        "fingerprint": "9f",
        "folder": "/scratch/d",
        "samples": 60_000,
    }
    records = [
        launch(data=known),
        launch(data=dict(known)),
        launch(workload="unet3d", data={"source": "BraTS"}),
        launch(workload="resnet50", data={}),
    ]
    assert [
        "data    mnist_cnn: generated digits, samples 60000, folder /scratch/d",
        "data    unet3d: source BraTS",
    ] == summarize(records, []).data


def test_a_launch_is_told_in_a_few_words(launch):
    """What the event of a finished launch says: step, rate, and what is wrong with it."""
    assert "75.1 ms a step, 853 samples/s" == launch_words(launch())
    assert "75.1 ms a step, 853 samples/s, invalid (too hot), unsteady" == launch_words(
        launch(valid=False, reasons=["too hot"], flags=["unsteady"])
    )
    assert "measured in 8 s" == launch_words(launch(median_step_seconds=0.0, samples_per_second=0.0))
