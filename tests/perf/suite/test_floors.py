from __future__ import annotations

import dataclasses
import datetime

import pytest
from launch_records import record
from reference_texts import VARIANT, occasion, whole

from perf.suite.floors import date_of, floor_judgement, low_power, node_of, occasions_of, variant_of
from perf.verdict.configuration import configuration, fingerprint
from perf.verdict.known import Library
from perf.verdict.metrics import METRICS
from perf.verdict.outcome import Verdict
from perf.verdict.references import parse
from perf.verdict.system import System

THROUGHPUT = METRICS["throughput"]
HERE = System("none", 0, None, "C")
THREE = occasion() + occasion("2026-11-09", "n2") + occasion("2026-11-16", "n3")


def launches(rate, count=5, run="r", host="n1", day=28):
    """Launches of one run on one node, with a spread of 0.2 %."""
    moment = datetime.datetime(2026, 11, day, 12, tzinfo=datetime.UTC).timestamp()
    return [
        record(
            samples_per_second=rate * (1 + (i - 2) / 1000),
            run=run,
            host=[host],
            started_at=moment + i,
            data={"kind": "x"},
        )
        for i in range(count)
    ]


def library(occasions=THREE, more=""):
    here = configuration(launches(1)[0])
    values = ", ".join(f"{k} = {v!r}".replace("'", '"') for k, v in here.items())
    name = variant_of(launches(1)[0])
    text = whole(f"""
[reference.{name}.throughput]
unit = "samples/s"
direction = "higher"
expires = 2027-05-01
fingerprint = "{fingerprint(here)}"
configuration = {{ {values} }}
{more}
{occasions.replace(VARIANT, name)}""")
    return Library([parse(text, "f.toml", lambda variant: None)], HERE, "2026-11-28")


def test_a_rate_at_the_reference_passes_with_its_floor():
    """The verdict holds the floor, the detectable loss, and where the reference stands."""
    found, known = floor_judgement(launches(100), THROUGHPUT, library())
    assert known is not None
    assert (Verdict.PASS, known.floor.bound) == (found.verdict, found.limit)
    assert 0 < found.detectable < 0.2
    assert any(reason.startswith("Reference: f.toml:8") for reason in found.reasons)


def test_a_first_miss_is_inconclusive_and_names_the_node():
    """A rate 20 % below three occasions is not a fail before it is seen elsewhere."""
    found, _ = floor_judgement(launches(80), THROUGHPUT, library())
    assert Verdict.INCONCLUSIVE is found.verdict
    assert "n1 on 2026-11-28 misses" in found.reasons[0]
    assert "seen again on another node" in " ".join(found.reasons)


def test_a_miss_on_a_second_node_fails():
    """Two runs on two nodes, both below: the floor is missed."""
    both = [*launches(80), *launches(81, run="s", host="n2", day=29)]
    found, _ = floor_judgement(both, THROUGHPUT, library())
    assert Verdict.FAIL is found.verdict


@pytest.mark.parametrize("days", [(28, 29), (29, 28)])
def test_a_miss_that_is_not_seen_again_is_inconclusive_whatever_the_order(days):
    """One slow node of two is named, also where it was measured last."""
    both = [*launches(80, day=days[0]), *launches(100, run="s", host="n2", day=days[1])]
    found, _ = floor_judgement(both, THROUGHPUT, library())
    assert Verdict.INCONCLUSIVE is found.verdict
    assert "look at n1" in found.reasons[0]


def test_a_provisional_reference_condemns_nobody():
    """With one occasion even two misses are inconclusive."""
    # A reference of one node binds that node only, where another date confirms.
    both = [*launches(80), *launches(80, run="s", day=29)]
    found, _ = floor_judgement(both, THROUGHPUT, library(occasion()))
    assert Verdict.INCONCLUSIVE is found.verdict
    assert "provisional" in " ".join(found.reasons)


def test_a_rate_far_above_the_reference_is_invalid():
    """Twice the rate with the same configuration: the work was not done."""
    found, _ = floor_judgement(launches(200), THROUGHPUT, library())
    assert Verdict.INVALID is found.verdict
    assert "Was all of the work done?" in found.reasons[0]


def test_without_a_reference_the_number_is_told():
    """Unreferenced, with the median and the range of the launches, and why."""
    found, known = floor_judgement(launches(100), THROUGHPUT, Library([], HERE, "2026-11-28"))
    assert known is None
    assert (Verdict.UNREFERENCED, 5) == (found.verdict, found.launches)
    assert (pytest.approx(99.8), pytest.approx(100.0), pytest.approx(100.2)) == (
        found.low,
        found.estimate,
        found.high,
    )
    assert "has no references: record some with `nox -s calibrate`" in found.reasons[0]


def test_too_few_launches_are_inconclusive():
    """One launch, as smoke takes it, is no measurement of a floor."""
    found, _ = floor_judgement(launches(100, count=1), THROUGHPUT, library())
    assert Verdict.INCONCLUSIVE is found.verdict
    assert "judged by 5 or more" in found.reasons[0]


def test_an_occasion_is_a_run_on_a_node():
    """Launches are taken in the order of their start; a run past midnight keeps its first date."""
    late = datetime.datetime(2026, 11, 28, 23, 59, 59, tzinfo=datetime.UTC).timestamp()
    mixed = [
        record(run="b", host=["n2", "n1"], started_at=late + 2, samples_per_second=2.0),
        record(run="b", host=["n1", "n2"], started_at=late, samples_per_second=1.0),
        record(run="a", host=["n1"], started_at=late - 9, samples_per_second=3.0),
    ]
    assert [("2026-11-28", "n1", (3.0,)), ("2026-11-28", "n1+n2", (1.0, 2.0))] == [
        (o.date, o.node, o.rates) for o in occasions_of(mixed, THROUGHPUT)
    ]
    assert "2026-11-29" == date_of(mixed[0])
    assert "n1+n2" == node_of(mixed[0])


def test_a_plan_is_part_of_the_key():
    """Epochs of a variant are another quantity than its window."""
    assert record().variant + "+epochs" == variant_of(record(plan="epochs"))


def test_a_reference_of_what_may_be_another_system_says_so():
    """With three occasions but an unknown CPU a miss is inconclusive, and not for want of occasions."""
    known = library()
    vague = Library([file for file, _ in known._matches], System("none", 0, None, None), "2026-11-28")
    found, _ = floor_judgement(launches(80), THROUGHPUT, vague)
    assert Verdict.INCONCLUSIVE is found.verdict
    assert "provisional: it is not known to be of the same system" in " ".join(found.reasons)
    assert "single occasion" not in " ".join(found.reasons)


def drawn(watts, busy):
    """Telemetry of one GPU that drew so much and was so busy."""
    gpu = {"ranks": [0], "power_watts": {"mean": watts}, "utilization_percent": {"mean": busy}}
    return {"gpus": [gpu]}


def powers(watts, busy):
    return [dataclasses.replace(one, telemetry=drawn(watts, busy)) for one in launches(100)]


def with_power():
    here = configuration(launches(1)[0])
    values = ", ".join(f"{k} = {v!r}".replace("'", '"') for k, v in here.items())
    name = variant_of(launches(1)[0])
    days = "".join(
        f"""
[[reference.{name}.power.occasion]]
date = 2026-11-{day}
node = "n{day}"
stack = "torch 2"
run = "r"
recorded_by = "a"
launches = [600.0, 601.0, 599.0, 600.0, 600.0]
"""
        for day in (10, 11, 12)
    )
    text = whole(f"""
[reference.{name}.power]
unit = "W"
direction = "higher"
expires = 2027-05-01
fingerprint = "{fingerprint(here)}"
configuration = {{ {values} }}
{days}""")
    return Library([parse(text, "f.toml", lambda variant: None)], HERE, "2026-11-28")


def test_a_gpu_that_is_busy_at_low_power_is_no_pass():
    """Where a reference has a power, a busy card far below it is told with both numbers."""
    (reason,) = low_power(powers(200.0, 99.0), with_power())
    assert "99 % busy and drew 200 W" in reason


@pytest.mark.parametrize(("watts", "busy"), [(598.0, 99.0), (200.0, 30.0)])
def test_ordinary_power_and_an_idle_gpu_accuse_nobody(watts, busy):
    """Neither what the reference drew, nor a card with nothing to do."""
    assert () == low_power(powers(watts, busy), with_power())


def test_without_a_power_in_the_reference_nothing_is_held_against_it():
    """A reference of throughput alone, and launches that could not be read, give no reason."""
    assert () == low_power(powers(200.0, 99.0), library())
    assert () == low_power(launches(100), with_power())
