"""The words in which a judgement is given."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

__all__ = ["Judgement", "Verdict"]


class Verdict(enum.StrEnum):
    """What a judgement can end in.

    ``pass`` and ``fail`` are answers. ``inconclusive``: too noisy, or too few launches, for the question.
    ``invalid``: the machine was not fit to measure, or the work was not done. ``unreferenced``:
    measured, but there is nothing to hold it against; not a pass.
    """

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    UNREFERENCED = "unreferenced"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Judgement:
    """One answer of one rule, in natural units, with the numbers that it rests on.

    Attributes
    ----------
    verdict
        None while undecided: more launches are wanted.
    estimate, low, high
        Ratio, share, difference of shares or rate, as the rule says. `low` and `high` are the two
        bounds that the rule itself used, or would have used, at the deciding look (``perf.verdict.looks``), so they
        show why the verdict is what it is. They are not a symmetric interval. All three are nan
        where a side has no launch at all.
    limit
        The value that `estimate` is held against, in the same unit.
    launches
        Launches a side that the deciding look used; later launches were not read.
    detectable
        The smallest change that this measurement would have failed with at least 95 % power:
        relative (0.04 = 4 %), for shares in points of share (0.04 = 4 points). None where no
        change, however large, could have failed, or where the spread is not known.
    reasons
        Plain sentences for who runs the cluster, the most important first.
    wants
        Launches a side that the next look needs in all (not how many more); 0 when decided.
    """

    verdict: Verdict | None
    estimate: float
    low: float
    high: float
    limit: float
    launches: int
    detectable: float | None
    reasons: tuple[str, ...]
    wants: int

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """`low` and `high`, None where it is not known: one launch does not show how far launches differ."""
        known = (
            bound if self.launches > 1 and math.isfinite(bound) else None for bound in (self.low, self.high)
        )
        low, high = known
        return low, high
