from __future__ import annotations

import dataclasses

from perf.report.figures.launches import Estimate, by_group, estimate, letter, question_of, sides


def named(launch, *variants, **changes):
    return [launch(variant=variant, **changes) for variant in variants]


def test_sides_are_named_by_what_tells_them_apart(launch):
    """The parts that all variants of a group share are left out; without a mode among modes it is the full one."""
    found = sides(
        named(
            launch,
            "net-single-1gpu-fp32-native",
            "net-single-1gpu-fp32-native-io",
            "net-ddp-2gpu-fp32-native",
        )
    )
    assert ["single 1gpu full", "single 1gpu io", "ddp 2gpu full"] == [side.label for side in found]
    assert ["base", "fused"] == [side.label for side in sides(named(launch, "net-x", "net-x-fused"))]
    assert ["net-x"] == [side.label for side in sides(named(launch, "net-x"))]


def test_names_that_would_be_equal_are_written_in_full(launch):
    """Two variants that differ only in how often a part occurs keep their whole ids."""
    assert ["a-b", "a-b-b"] == [side.label for side in sides(named(launch, "a-b", "a-b-b"))]


def test_profiled_and_invalid_launches_are_no_part_of_a_side(launch):
    """A launch with phases or a line profile is left out; an invalid one is counted."""
    found = sides(
        [
            launch(),
            launch(valid=False),
            launch(line_profiles=["p"]),
            launch(phase_seconds=[{"data": [1.0]}]),
        ]
    )
    assert [(1, 1)] == [(len(side.launches), side.invalid) for side in found]
    assert [] == sides([launch(valid=False)])


def test_runs_are_kept_apart_by_letter(launch):
    """The same variant in two runs is two sides; a run of several jobs is one."""
    found = sides([launch(run="x"), launch(run="y"), launch(run="z")], {"x": "A", "y": "A", "z": "B"})
    assert [("A", 2), ("B", 1)] == [(side.run, len(side.launches)) for side in found]
    assert 2 == len({side.label for side in found})
    assert ("A", "Z", "run 27") == (letter(0), letter(25), letter(26))


def test_numbers_of_a_side(launch):
    """Medians with the launches' range; the rank that waits most decides; what is 0 was not measured."""
    side = sides([launch(samples_per_second=rate) for rate in (100.0, 300.0, 0.0, 200.0)])[0]
    assert Estimate(200.0, 100.0, 300.0, 3) == side.rate
    assert 0.02 == side.wait_share.median
    assert sides([launch(median_step_seconds=0.0)])[0].step is None


def test_an_estimate_says_range_only_for_several_launches():
    """One launch has no range; nothing is no estimate."""
    assert "2.000 [1.000–3.000] ms" == estimate([0.001, 0.002, 0.003]).text("ms", 1e3)
    assert "2.000 s" == estimate([2.0, None, float("nan")]).text("s")
    assert estimate([None]) is None


def test_groups_are_sorted_and_read(launch):
    """Groups stand in the order of first appearance, and begin with their question."""
    found = by_group(
        sides(
            [launch(group="b@n"), launch(group="a@n"), dataclasses.replace(launch(group="b@n"), variant="w")]
        )
    )
    assert {"b@n": 2, "a@n": 1} == {name: len(group) for name, group in found.items()}
    assert ["b@n", "a@n"] == list(found)
    assert ("loader", "odd") == (question_of("loader@mnist_cnn-gpu"), question_of("odd"))


def test_a_stack_beside_itself_has_two_sides(launch):
    """Their launches are not mixed, though variant and stack are the same."""
    found = sides([launch(side=side, median_step_seconds=s) for side, s in (("old", 0.1), ("new", 0.2))])
    assert ["@old", "@new"] == [side.variant[-4:] for side in found]
    assert [0.1, 0.2] == [side.step.median for side in found]
