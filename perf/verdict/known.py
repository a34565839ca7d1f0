"""What is known of a variant on the system of a run: the reference that holds for it, or why none does. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perf.verdict.configuration import differences
from perf.verdict.floors import Floor, Occasion, floor_from
from perf.verdict.metrics import METRICS
from perf.verdict.references import ExpectedFailure, Reference, ReferenceFile, is_over
from perf.verdict.system import Match, System, match

__all__ = ["Known", "Library"]


@dataclass(frozen=True)
class Known:
    """A reference that holds, turned into a floor.

    Attributes
    ----------
    notes
        Sentences for whoever reads a verdict: where the reference comes from, and how far it goes.
    """

    reference: Reference
    floor: Floor
    single_node: bool
    notes: tuple[str, ...]


class Library:
    """The reference files that hold for one system on one date.

    Parameters
    ----------
    files
        All that were found.
    here
        The run's system.
    date
        The run's date (ISO): what expired before it does not hold.
    """

    def __init__(self, files: Sequence[ReferenceFile], here: System, date: str) -> None:
        self.here = here
        self._date = date
        self._matches = [(files[one.index], one) for one in match(here, [file.system for file in files])]

    @property
    def lines(self) -> list[str]:
        """Which files hold here, the nearest first, with what had to be passed over."""
        if not self._matches:
            return [f"no references for this system ({self.here.words})"]
        return [
            f"references: {file.where}" + (f" ({'; '.join(one.notes)})" if one.notes else "")
            for file, one in self._matches
        ]

    def find(self, variant: str, metric: str, configuration: Mapping[str, Any]) -> Known | str:
        """Return what is known of a variant's metric, or why nothing is, in a sentence.

        The nearest file that has a reference decides; a reference of it that does not hold is not looked for further
        away, since the nearer one says why.
        """
        for file, one in self._matches:
            reference = file.references.get((variant, metric))
            if reference is not None:
                return self._hold(file, one, reference, configuration)
        if not self._matches:
            return f"This system ({self.here.words}) has no references: record some with `nox -s calibrate`."
        names = ", ".join(file.where for file, _ in self._matches)
        return f"There is no reference for {metric} of {variant} in {names}."

    def expected_failure(self, variant: str, metric: str) -> ExpectedFailure | None:
        """Return why a judgement is known to fail; None if it isn't, or no longer."""
        for file, _ in self._matches:
            found = file.expected_failures.get((variant, metric))
            if found is not None:
                return None if is_over(found.expires, self._date) else found
        return None

    def margin(self, variant: str, metric: str) -> tuple[float | None, float | None]:
        """Return a variant's spread from launch to launch (log) and the margin that it allows, where known."""
        for file, _ in self._matches:
            reference = file.references.get((variant, metric))
            if reference is not None:
                return reference.spread, reference.margin
        return None, None

    def _hold(
        self, file: ReferenceFile, one: Match, reference: Reference, configuration: Mapping[str, Any]
    ) -> Known | str:
        place = f"{file.where}:{reference.line}"
        if is_over(reference.expires, self._date):
            return f"The reference expired on {reference.expires} ({place}): calibrate again."
        changed = differences(reference.configuration, dict(configuration))
        if changed:
            return f"The reference is of another configuration ({place}): {'; '.join(changed)}."
        floor = floor_from(
            [Occasion(found.date, found.node, found.values) for found in reference.occasions],
            higher_is_better=METRICS[reference.metric].higher_is_better,
            tolerance=reference.tolerance,
        )
        last = max(reference.occasions, key=lambda found: found.date)
        notes = [f"Reference: {place}, last recorded on {last.date} on {last.node} with {last.stack}."]
        if reference.tolerance is not None:
            notes.append(f"Its tolerance is not the computed one: {reference.reason}.")
        if one.notes:
            notes.append(f"It is not known to be the same system: {'; '.join(one.notes)}.")
        if one.provisional:
            # What is not known to be the same system may show a number, but not condemn a stack by it.
            floor = dataclasses.replace(floor, provisional=True)
        return Known(reference, floor, file.single_node, tuple(notes))
