"""Only with ``--portable-floors``: what a variant makes of its machine, against what it makes of known ones."""

from __future__ import annotations

from typing import Any

import pytest

from perf.catalogue import Member
from perf.portable import card_of, fractions_of
from perf.rates import trained
from perf.suite.judge import Judge
from perf.suite.source import Measurement
from perf.verdict.portable import governing
from perf.verdict.portable_table import PortableTable


@pytest.mark.parametrize(("training", "cards"), trained())
def test_fraction_is_not_far_below_known_systems(
    training: Member, cards: tuple[Member, ...], bench: Any, known_systems: PortableTable, limits: Judge
) -> None:
    """Of the rate that bounds it elsewhere, a variant reaches no much smaller part here."""
    launches = [launch for card in cards for launch in bench.measure(card).launches]
    rates = card_of(launches, training.variant.device)
    known = known_systems.known(training.id)
    bound = governing(known)

    def values(measured: Measurement) -> list[float]:
        found = [fractions_of(launch, rates) for launch in measured.launches]
        if not all(found):
            return []
        # Where no system is known the nearest bound is shown.
        shown = bound or max(found[0], key=lambda name: found[0][name])
        return [of[shown] for of in found if shown in of]

    if not values(bench.measure(training)):
        pytest.skip(f"{training.id} has no fraction of {bound or 'any rate'} on this machine's card")
    limits.portable(
        training,
        bound or "nearest",
        [k.fractions[bound] for k in known if bound],
        known_systems.tolerance,
        values,
    )
