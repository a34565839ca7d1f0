"""What bounds a run follows from three throughputs and from how far the host runs ahead; a knee is a smallest count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.bound import bound_of, gain_in_words, host_or_device, knee
from perf.verdict.outcome import Judgement, Verdict

RATES = st.floats(1.0, 1e6)


@pytest.mark.parametrize(
    ("full", "synthetic", "io", "drain", "word", "contention"),
    [
        # The SC22 tutorial's figures: Summit native, DALI; Perlmutter native with 16 workers.
        (4.212, 102.148, 4.750, 3.0, "data", False),
        (101.4, 102.855, 582.159, 3.0, "device", False),
        (166.87, 415.43, 234.45, 3.0, "data", True),
        # mnist_cnn on an H100: the host queues slower than the device works.
        (23_000, 36_000, 97_000, 0.02, "host", True),
        (23_000, 24_000, 97_000, 0.3, "unknown", False),
        # resnet152 at 224 on an H200: 185 ms of work a step, and launches of two thirds of one step queued.
        (339, 347, 3_318, 0.66, "device", False),
        (380, 390, 2_700, None, "device", False),
    ],
)
def test_a_run_is_bound_by_the_slower_of_its_parts(full, synthetic, io, drain, word, contention):
    """The published series are told as their authors tell them."""
    found = bound_of([full], [synthetic], [io], drain)

    assert (word, contention) == (found.word, found.contention)
    assert full / min(synthetic, io) == pytest.approx(found.efficiency)
    assert ("contention" in found.sentence) is contention


def test_a_starved_device_is_named_with_the_numbers():
    """A loader below 5 % of what the device could take says both numbers."""
    sentence = bound_of([4.2], [102.0], [4.75], 3.0).sentence

    assert "4.75 samples/s" in sentence
    assert "102" in sentence
    assert "idle nearly all of the time" in sentence
    assert "idle" not in bound_of([8.0], [102.0], [8.5], 3.0).sentence


@pytest.mark.parametrize("missing", ["full", "synthetic", "io"])
def test_a_series_that_did_not_complete_is_an_error(missing):
    """Without a launch of a mode nothing is told; benchy ends in silence there."""
    rates = {"full": [1.0], "synthetic": [2.0], "io": [3.0], missing: []}

    with pytest.raises(ValueError, match=f"mode {missing} has no launch: the series did not complete"):
        bound_of(rates["full"], rates["synthetic"], rates["io"], None)


@given(st.lists(RATES, min_size=1, max_size=7), RATES, RATES, st.none() | st.floats(0, 100))
def test_the_word_is_one_of_four(full, synthetic, io, drain):
    """Whatever the rates, there is one answer, and data bound it only if the loader is the slower part."""
    found = bound_of(full, [synthetic], [io], drain)

    assert found.word in {"data", "host", "device", "unknown"}
    assert ("data" == found.word) is (io < synthetic)


def test_a_host_that_runs_ahead_leaves_the_device_much_of_a_step():
    """Half a step and more is the device's, less than a tenth the host's, between them nobody's."""
    assert ["device", "device", "unknown", "host", "device"] == [
        host_or_device(steps) for steps in (1.5, 0.5, 0.3, 0.07, None)
    ]


def gain(low, estimate, high, launches=5):
    """Return what a rung's judgement says."""
    return Judgement(Verdict.INCONCLUSIVE, estimate, low, high, 1.1, launches, None, (), 0)


@pytest.mark.parametrize(
    ("low", "estimate", "high", "drain", "expected"),
    [
        (0.34, 0.353, 0.36, 3.0, "It is 2.83 times as fast (2.78 to 2.94)."),
        (1.1, 1.25, 1.4, 3.0, "It is 0.8 times as fast"),
        (
            0.99,
            1.0,
            1.01,
            0.05,
            "It changes nothing, 1 times as fast (0.99 to 1.01): the run is bound by the host",
        ),
        (0.99, 1.0, 1.01, 4.0, "the device's kernels gain nothing from it"),
        (0.99, 1.0, 1.01, 0.2, "not clear"),
        (0.7, 0.9, 1.1, 0.5, "which is not beyond noise"),
        (0.79, 0.885, 0.99, 0.1, "(1.01 to 1.27), which may be a change of less than 3%."),
        (1.01, 1.08, 1.2, 0.1, "(0.833 to 0.99), which may be a change of less than 3%."),
    ],
)
def test_a_rung_that_changes_nothing_says_why(low, estimate, high, drain, expected):
    """A gain is told with its interval; no gain with its cause."""
    assert expected in gain_in_words(gain(low, estimate, high), drain)


def test_a_rung_of_one_launch_has_no_interval():
    """One launch a side does not show how far launches differ: no bounds are told, and none is taken for noise."""
    assert (
        "It is 2 times as fast in one launch a side; how far launches differ is not known."
        == gain_in_words(gain(0.5, 0.5, 0.5, launches=1), 3.0)
    )


def test_a_rung_of_a_run_that_waits_for_its_data_gains_nothing():
    """Where the loader is waited for most of the time, no rung of the training can show."""
    assert "waits for its data" in gain_in_words(gain(0.99, 1.0, 1.01), 0.1, wait_share=0.8)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({1: 7020, 2: 11410, 4: 20480, 8: 21640}, (8, False)),
        ({1: 84, 2: 144, 4: 199, 8: 208, 16: 211}, (8, False)),
        # The SC23 ViT: 16 workers give less than 4.
        ({4: 12.4, 8: 12.0, 16: 11.3}, (4, True)),
        ({2: 5.0}, (2, False)),
    ],
)
def test_the_knee_is_the_smallest_count_that_is_nearly_best(rates, expected):
    """More workers than that gain nothing that a launch can see; fewer at the end are told."""
    assert expected == knee(rates)


@given(st.dictionaries(st.integers(1, 64), RATES, min_size=1))
def test_a_knee_is_one_of_the_counts(rates):
    """The knee gives at least 95 % of the best, and no smaller count does."""
    found, falls = knee(rates)

    assert rates[found] >= 0.95 * max(rates.values())
    assert all(rates[n] < 0.95 * max(rates.values()) for n in rates if n < found)
    assert falls is (rates[max(rates)] < 0.95 * max(rates.values()))


def test_a_sweep_without_a_count_has_no_knee():
    """Nothing in, an error out."""
    with pytest.raises(ValueError, match="no knee"):
        knee({})
