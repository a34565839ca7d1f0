from __future__ import annotations

import io

import pytest
from launch_records import record_of
from rich.console import Console

from perf.catalogue import GROUPS, home
from perf.contract import Rate
from perf.report.machine import fraction_rows, prefixed, rate_rows, scale
from perf.report.summary import summarize
from perf.report.tables import print_report
from perf.verdict.portable_table import parse

(CARD,) = GROUPS["rates@machine-gpu"].members
SINGLE = home("mnist_cnn-single-1gpu-fp32-native")
RATES = {
    "matmul_fp32": Rate(5e13, "FLOP/s", [4e13, 5e13, 6e13], 0.2, {"side": 8192}),
    "python_loop": Rate(3_141_592.0, "1/s", [3_141_592.0]),
    "matmul_tf32": Rate(None, "FLOP/s", reason="compute capability 7.0 has no tf32"),
}
TABLE = parse(
    f"""schema = 1
tolerance = 0.5
reason = "x"
[[system]]
name = "a"
date = 2026-11-28
source = "b"
[system.fraction."{SINGLE.id}"]
matrix = 0.25
""",
    "x",
    lambda variant: None,
)


def card(**changes):
    return record_of(CARD, rates=dict(RATES), **changes)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2.45e11, "FLOP/s", "245 GFLOP/s"),
        (9.9e14, "FLOP/s", "990 TFLOP/s"),
        (1.2e9, "B/s", "1.20 GB/s"),
        (3e15, "FLOP/s", "3.00 PFLOP/s"),
        (12.0, "B/s", "12.0 B/s"),
        (3_141_592.0, "1/s", "3141592 1/s"),
        (None, "B/s", "–"),
    ],
)
def test_a_rate_is_written_with_a_prefix(value, unit, expected):
    """Powers of ten, as bandwidths and peaks are given; a frequency keeps its digits."""
    assert expected == prefixed(value, unit)


def test_other_units_are_left_alone():
    """Samples/s and ratios are read as they are."""
    assert (1.0, "samples/s") == scale(5e9, "samples/s")


def test_a_row_is_the_median_over_launches():
    """With the spread within a launch and the number of all repetitions; an invalid launch is left out."""
    faster = card(launch="2")
    faster.rates["matmul_fp32"] = Rate(7e13, "FLOP/s", [7e13] * 3, 0.1)
    rows = {row.rate: row for row in rate_rows([card(), card(valid=False), faster])}

    assert (6e13, 2, 6) == tuple(
        getattr(rows["matmul_fp32"], key) for key in ("value", "launches", "repetitions")
    )
    assert 0.15 == pytest.approx(rows["matmul_fp32"].spread)
    assert (None, None, "compute capability 7.0 has no tf32") == tuple(
        getattr(rows["matmul_tf32"], key) for key in ("value", "spread", "remark")
    )


def test_a_variant_is_shown_beside_known_systems():
    """Only where the run has a card of the same kind of device."""
    (row,) = fraction_rows([card(), record_of(SINGLE, samples_per_second=1e5)], TABLE)

    assert (SINGLE.variant.id, "matrix 25 % on 1") == (row.variant, row.known)
    assert 1e5 * 71_565_312 / 5e13 == pytest.approx(row.fractions["matrix"])
    assert [] == fraction_rows([record_of(SINGLE)], TABLE)
    assert [] == fraction_rows([card(device="cpu"), record_of(SINGLE)], TABLE)


def test_profiled_launches_show_no_fractions():
    """They were slowed by what looked at them."""
    assert [] == fraction_rows([card(), record_of(SINGLE, line_profiles=["a.lprof"])])


@pytest.mark.parametrize("width", [60, 200])
def test_the_report_shows_the_machine_and_what_is_made_of_it(width):
    """Each rate with its unit, each fraction in percent, at any width."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_report(console, summarize([card(), record_of(SINGLE, samples_per_second=1e5)], [], TABLE))
    text = console.file.getvalue()

    for part in (
        "Machine",
        "50.0 TFLOP/s",
        "compute capability 7.0",
        "Of the machine's rates",
        "14.3 %",
        "25 %",
    ):
        assert part in text


def test_a_run_without_a_card_shows_neither_table():
    """Nothing is shown of what was not measured."""
    console = Console(file=io.StringIO(), width=100)
    print_report(console, summarize([record_of(SINGLE)], []))

    assert "achine" not in console.file.getvalue()
