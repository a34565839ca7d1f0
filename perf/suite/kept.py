"""Launches of earlier runs, where a source of launches is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perf import contract
from perf.catalogue import Member
from perf.suite.source import Measurement, pick

__all__ = ["NotStored", "Stored"]


class NotStored(LookupError):
    """Stored launches were asked for that a run does not hold."""


class Stored:
    """Launches of earlier runs, judged again without measuring."""

    def __init__(self, launches: Iterable[contract.LaunchRecord], where: str) -> None:
        self._where = where
        self._launches: dict[tuple[str, str], list[contract.LaunchRecord]] = {}
        self._replaced: dict[tuple[str, str], list[contract.LaunchRecord]] = {}
        found = list(launches)
        self._rates = [record for record in found if record.rates]
        again = {(record.run, record.replaces) for record in found if record.replaces}
        self._watched: dict[tuple[str, str], list[contract.LaunchRecord]] = {}
        for record in found:
            if record.profiled:
                self._watched.setdefault((record.group, _member_id(record)), []).append(record)
            else:
                kept = self._replaced if (record.run, record.launch) in again else self._launches
                kept.setdefault((record.group, _member_id(record)), []).append(record)

    def lacks(self, member: Member) -> str | None:
        """Return why the member can't be judged again: there is no launch of it in its group; None if there is."""
        if self.launches_of(member):
            return None
        return f"{self._where} holds no launch of {member.id} in the group {member.group}"

    def launches_of(self, member: Member) -> list[contract.LaunchRecord]:
        """Return the stored launches of the rounds that a member was in; none where there is none."""
        return pick(self._launches.get((member.group, member.id), []), "")

    def measure(self, member: Member) -> Measurement:
        """Return the stored launches of the member's group.

        Raises
        ------
        NotStored
            If there is none.
        """
        return self.sides("", [member])[0]

    def sides(self, test: str, members: Sequence[Member]) -> list[Measurement]:
        """Return the stored launches that `test` may use."""
        for member in members:
            reason = self.lacks(member)
            if reason:
                raise NotStored(reason)
        return [
            Measurement(
                m,
                pick(self._launches[m.group, m.id], test),
                tuple(pick(self._replaced.get((m.group, m.id), []), test)),
            )
            for m in members
        ]

    def profiled(self, member: Member, extra: str) -> contract.LaunchRecord:
        """Return the member's stored launch for a profile.

        Raises
        ------
        NotStored
            If there is none.
        """
        found = self.watched([member], extra, 1)[member.id]
        if not found:
            raise NotStored(f"{self._where} holds no launch of {member.id} for {extra}")
        return found[0]

    def more(self, test: str, sides: Sequence[Member], launches: int) -> bool:
        """Stored launches can't be added to."""
        return False

    def watched(
        self, members: Sequence[Member], kind: str, launches: int
    ) -> dict[str, list[contract.LaunchRecord]]:
        """Return the stored launches of that kind."""
        return {
            m.id: [
                record
                for kept in (self._watched, self._launches)
                for record in kept.get((m.group, m.id), [])
                if (record.rates if kind == "rates" else record.profiled == kind)
            ]
            for m in members
        }

    def explain(self, members: Sequence[Member]) -> list[contract.LaunchRecord]:
        """Return the stored launches that tell where the time of members goes."""
        return [
            one
            for kind in ("phases", "line-profile")
            for launches in self.watched(members, kind, 1).values()
            for one in launches
        ]

    def rates(self) -> list[contract.LaunchRecord]:
        """Return the stored launches that measured the machine."""
        return self._rates


def _member_id(record: contract.LaunchRecord) -> str:
    """Return the id of the member that a record is of."""
    plan = "" if record.plan == "window" else f"+{record.plan}"
    return record.variant + plan + (f"@{record.side}" if record.side else "")
