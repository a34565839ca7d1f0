"""A source of launches for judgements, whose steps a test says."""

from __future__ import annotations

import dataclasses

from launch_records import PAIR_GROUP, record_of

from perf.catalogue import Pair
from perf.limits import Limit
from perf.suite.source import Measurement
from perf.verdict.system import System

SINGLE, DDP1, _ = PAIR_GROUP.members
PAIR = Pair(PAIR_GROUP, DDP1, SINGLE)
LIMIT = Limit("ddp_overhead", 1.2, "ratio", "Because 1.2 was measured.")
HERE = System("none", 0)
NOISE = (0.999, 1.001, 1.0, 0.998, 1.002, 1.0005, 0.9995, 1.0015, 0.9985, 1.0001)


class Launches:
    """A source with a fixed step a member; counts what it was asked for."""

    def __init__(self, steps, most=10, **changes):
        self.steps, self.most, self.changes = steps, most, changes
        self.have = 5

    def lacks(self, member):
        return None

    def measure(self, member):
        return self.sides("", [member])[0]

    def sides(self, test, members):
        return [
            Measurement(
                m, [record_of(m, self.steps[m.id] * NOISE[i], **self.changes) for i in range(self.have)]
            )
            for m in members
        ]

    def more(self, test, sides, launches):
        if launches > self.most:
            return False
        self.have = launches
        return True

    def explain(self, members):
        self.explained = members
        phases = {"forward": 0.004, "backward": 0.006}
        return [
            record_of(
                m, phase_seconds=[{k: [v * (1 + place)] * 40 for k, v in phases.items()}], warmup_steps=20
            )
            for place, m in enumerate(reversed(members))
        ]

    def rates(self):
        return []


class InGroups(Launches):
    """Steps that all take as long but for the last of ten, which waits for such a part of the whole window."""

    def __init__(self, steps, waited):
        super().__init__(steps)
        self.waited = waited

    def sides(self, test, members):
        return [
            dataclasses.replace(side, launches=[self.waiting(one, side.member) for one in side.launches])
            for side in super().sides(test, members)
        ]

    def waiting(self, one, member):
        share = self.waited[member.id]
        window = one.window_seconds / (1.0 - share)
        return dataclasses.replace(
            one,
            window_seconds=window,
            window_seconds_per_rank=[window],
            wait_seconds=[share * window],
        )


def steps(ratio):
    return {SINGLE.id: 0.01, DDP1.id: 0.01 * ratio}
