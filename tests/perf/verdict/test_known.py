from __future__ import annotations

import re

import pytest
from reference_texts import CONFIGURATION, VARIANT, occasion, reference, whole

from perf.verdict.known import Known, Library
from perf.verdict.references import parse
from perf.verdict.system import System

HERE = System("none", 0, None, "C")
THREE = occasion() + occasion("2026-11-09", "n2") + occasion("2026-11-16", "n3")


def library(*texts, here=HERE, date="2026-11-28"):
    files = [parse(text, f"f{i}.toml", lambda variant: None) for i, text in enumerate(texts)]
    return Library(files, here, date)


def find(found, **changes):
    return found.find(VARIANT, "throughput", {**CONFIGURATION, **changes})


def test_three_occasions_make_a_floor_that_binds():
    """The floor comes from the occasions, and the notes say where the reference stands and who recorded it last."""
    found = find(library(whole(reference(occasions=THREE))))
    assert isinstance(found, Known)
    assert (3, False) == (found.floor.occasions, found.floor.provisional)
    assert 100.0 == pytest.approx(found.floor.centre)
    assert found.notes[0].startswith(
        "Reference: f0.toml:8, last recorded on 2026-11-16 on n3 with torch 2.14.1"
    )


def test_a_written_tolerance_takes_the_place_of_the_computed_one_and_its_reason_is_told():
    """A tolerance of 20 % puts the floor at 80 % of the centre."""
    found = find(library(whole(reference("tolerance = 0.2\nreason = 'shared node'", THREE))))
    assert isinstance(found, Known)
    assert 80.0 == pytest.approx(found.floor.bound)
    assert "Its tolerance is not the computed one: shared node." in found.notes


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        (whole(reference(expires="2026-11-28")), {}, r"expired on 2026-11-28 \(f0.toml:8\): calibrate again"),
        (whole(), {"workers": 7}, r"of another configuration \(f0.toml:8\): workers was 1 and is 7"),
        (whole(), {"new": 1}, "new was not recorded and is 1"),
        (whole(""), {}, "There is no reference for throughput of mnist_cnn.* in f0.toml"),
        (whole().replace('cpu = "C"', 'cpu = "D"'), {}, r"This system \(no GPU, C\) has no references"),
    ],
)
def test_what_does_not_hold_says_why(text, changes, words):
    """Expired, another configuration, another system, or nothing there: a sentence, and never a floor."""
    found = find(library(text), **changes)
    assert isinstance(found, str)
    assert re.search(words, found)


def test_a_system_that_is_not_surely_the_same_gives_a_provisional_floor():
    """Where the CPU is not known a number can be shown, and a miss condemns nobody."""
    found = find(library(whole(reference(occasions=THREE)), here=System("none", 0, None, None)))
    assert isinstance(found, Known)
    assert found.floor.provisional
    assert "the host's CPU is not known here" in found.notes[-1]


def test_the_nearest_file_decides():
    """A reference of the very same system wins; if it does not hold, no other one is looked for."""
    vague = whole(reference(occasions=THREE)).replace('cpu = "C"\n', "")
    expired = whole(reference(expires="2026-11-28"))
    assert "expired" in find(library(vague, expired))
    assert isinstance(find(library(vague, whole(""))), Known)


def test_expected_failures_end():
    """An expected failure holds until it expires, for its variant and metric alone."""
    text = whole(
        '\n[[expected_failure]]\nvariant = "v"\nmetric = "m"\nreason = "ticket 12"\nexpires = 2026-12-01\n'
    )
    found = library(text).expected_failure("v", "m")
    assert found is not None
    assert "ticket 12" == found.reason
    assert library(text).expected_failure("v", "other") is None
    assert library(text, date="2026-12-01").expected_failure("v", "m") is None


def test_lines_say_which_files_hold():
    """The report's header names the files, the nearest first, and what had to be passed over."""
    vague = whole().replace('cpu = "C"\n', "")
    assert [
        "references: f1.toml",
        "references: f0.toml (the host's CPU is not known of the reference)",
    ] == library(vague, whole()).lines
    assert ["no references for this system (no GPU, C)"] == library().lines


def test_a_comparison_asks_for_its_margin():
    """Spread and margin come with the reference; both are unknown without one."""
    assert (0.01, 0.04) == library(whole(reference("spread = 0.01\nmargin = 0.04"))).margin(
        VARIANT, "throughput"
    )
    assert (None, None) == library().margin(VARIANT, "throughput")
