"""Preflight in the suite: each launch is checked against the node before it starts, and the findings are shown once."""

from __future__ import annotations

from collections.abc import Callable

from perf.contract import LaunchRecord, LaunchSpec
from perf.launch.nccl import transport_in_words
from perf.launch.preflight import Demand, Finding, NodeFacts, check, stopping
from perf.workloads import SUBJECTS


class Unfit(Exception):
    """The node is not fit for a launch. The message says why and what to do."""


class Preflight:
    """Checks launches against what the node has.

    Parameters
    ----------
    collect
        Reads the node; called before each launch, since ports, shared memory and limits change.
    say
        Told each new finding that stands against a launch.
    """

    def __init__(self, collect: Callable[[], NodeFacts], say: Callable[[str], None]) -> None:
        self._collect = collect
        self._say = say
        self._said: set[str] = set()

    def __call__(self, spec: LaunchSpec) -> None:
        """Check one launch.

        Raises
        ------
        Unfit
            With the sentence and the remedy of the first finding that forbids it.
        """
        demand = Demand.of(spec, SUBJECTS[spec.workload].sample_bytes)
        findings = check([demand], self._collect())
        first = not self._said
        for finding in findings:
            # Before the first launch everything is said; later only what is wrong, or worth knowing.
            telling = first or not finding.ok or "oversubscribed" in finding.sentence
            if telling and finding.sentence not in self._said:
                self._said.add(finding.sentence)
                self._say(words(finding))
        against = stopping(findings, spec.variant)
        if against is not None:
            raise Unfit(words(against))

    def after(self, spec: LaunchSpec, record: LaunchRecord) -> None:
        """Say which transport NCCL chose in a launch that has ended; once, and whenever it is another one."""
        if spec.backend != "nccl" or spec.world_size < 2:
            return
        ok, sentence, remedy = transport_in_words(spec, record.telemetry.get("transports"))
        finding = Finding(ok, "transport", f"{spec.variant}: {sentence}", remedy)
        if finding.sentence not in self._said:
            self._said.add(finding.sentence)
            self._say(words(finding))


def words(finding: Finding) -> str:
    """Return a finding as one line: what was looked at, what was found, what to do."""
    return " ".join(
        part for part in (f"preflight, {finding.name}:", finding.sentence, finding.remedy) if part
    )
