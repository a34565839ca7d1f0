"""One sample of launches against a limit: a quantity that each launch yields by itself.

For example the first-epoch penalty, first epoch / steady epoch, of launches with the same cache state.

* `fail` at 10 launches, if all 10 exceed the limit (sign test, 2**-10 for any noise with its median on the
  limit) and Student's t bound of the log values at 2e-4 does too (the budget of one judgement).
* `pass` at 5 launches, if all 5 lie below the limit (2**-5 = 3.1 %); at 10, if at least 9 do (11/1024 =
  1.1 %). With its median on the limit any noise passes in at most 4.2 % of judgements: the 5 % that is
  promised, without assuming a shape.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perf.verdict.inputs import check_cap, positive_logs
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.quantiles import student_t_quantile
from perf.verdict.words import change, percent

__all__ = ["FAIL_LEVEL", "ONE_SAMPLE_LOOKS", "judge_one_sample"]

ONE_SAMPLE_LOOKS = {5: 0, 10: 1}
"""Launches -> how many of them may reach the limit in a `pass` (levels above: 3.1 % and 1.1 %)."""

FAIL_LOOK = 10
"""Launches at which a `fail` is possible: 2**-5 at 5 launches is far above the budget."""

FAIL_LEVEL = 2e-4
"""Level of the t bound that supports a `fail`: the budget of one judgement."""

# Excess over the limit in launch-level sds that fails with 95 % power at 10 launches: 2.69 by a simulation of
# 1,000,000 normal samples (tests/perf/verdict/test_one_sample.py repeats it in small).
POWER_FACTOR = 2.7

# s+ / s = sqrt(df / chi-square quantile(0.2, df)), df = n - 1: the upper 80 % bound of an sd from one sample.
SPREAD_FACTORS = {5: 1.56, 10: 1.30}


def judge_one_sample(values: Sequence[float], *, limit: float, cap: int) -> Judgement:
    """Judge ``value <= limit`` for a positive quantity that each launch yields by itself.

    Parameters
    ----------
    values
        One number a launch, in launch order, for example first epoch / steady epoch. Only the first 5 or 10 are read.
    limit
        Largest value that is allowed, positive.
    cap
        Launches that the profile affords; with fewer than 5 the answer is `inconclusive`.

    Returns
    -------
    Judgement
        `estimate` is the median; `low` the t bound at 2e-4, `high` the value that `pass` holds against the limit.

    Raises
    ------
    ValueError
        If a value or the limit is not positive and finite, or `cap` is below 1.
    """
    if not (math.isfinite(limit) and limit > 0.0):
        raise ValueError(f"the limit is a positive number, got {limit!r}")
    logs = positive_logs(values, "the sample")
    check_cap(cap)
    log_limit = math.log(limit)
    looks = [n for n in ONE_SAMPLE_LOOKS if n <= cap]
    if not looks:
        reason = (
            f"This profile affords {cap} launch{'' if cap == 1 else 'es'}; nothing is decided with "
            "fewer than 5."
        )
        return _judgement(logs[:cap], Verdict.INCONCLUSIVE, limit, cap, (reason,), 0)
    used: list[float] = logs[: looks[0]]
    for n in looks:
        if len(logs) < n:
            reason = f"Undecided with {len(used)} launches: the next look needs {n}."
            return _judgement(used, None, limit, cap, (reason,), n)
        used = logs[:n]
        reaching = sum(value >= log_limit for value in used)
        if reaching <= ONE_SAMPLE_LOOKS[n]:
            reason = f"{n - reaching} of {n} launches lie below the limit of {limit:.3g}."
            return _judgement(used, Verdict.PASS, limit, cap, (reason,), 0)
        bound = _lower_bound(used)
        if n == FAIL_LOOK and min(used) > log_limit and bound > log_limit:
            reason = (
                f"All {n} launches exceed the limit of {limit:.3g}, and so does their lower bound, "
                f"{math.exp(bound):.3g}."
            )
            return _judgement(used, Verdict.FAIL, limit, cap, (reason,), 0)
    return _judgement(used, Verdict.INCONCLUSIVE, limit, cap, _open(used, log_limit, limit, cap), 0)


def _open(used: list[float], log_limit: float, limit: float, cap: int) -> tuple[str, ...]:
    n = len(used)
    above = sum(value > log_limit for value in used)
    first = (
        f"{above} of {n} launches exceed the limit of {limit:.3g}: too many to pass, and not enough to fail."
    )
    if above == n:
        first = f"All {n} launches exceed the limit of {limit:.3g}, but not by enough to be sure."
    if n < FAIL_LOOK:
        return first, f"10 launches can answer; this profile affords {cap}."
    spread = statistics.stdev(used)
    return first, (
        f"More launches are not planned for: the values spread by {percent(spread)} (standard deviation), "
        "and a limit should "
        "lie at least two of these away from the healthy value."
    )


def _lower_bound(logs: list[float]) -> float:
    """Return Student's lower bound of the mean of the logs at `FAIL_LEVEL`."""
    n = len(logs)
    if n < 2:
        return -math.inf
    return statistics.fmean(logs) - student_t_quantile(1.0 - FAIL_LEVEL, n - 1) * statistics.stdev(
        logs
    ) / math.sqrt(n)


def _judgement(
    logs: list[float],
    verdict: Verdict | None,
    limit: float,
    cap: int,
    reasons: tuple[str, ...],
    wants: int,
) -> Judgement:
    n = len(logs)
    if n == 0:
        return Judgement(verdict, math.nan, math.nan, math.nan, limit, 0, None, reasons, wants)
    allowed = ONE_SAMPLE_LOOKS.get(n, 0)
    detectable = None
    if cap >= FAIL_LOOK and n in SPREAD_FACTORS:
        detectable = change(POWER_FACTOR * SPREAD_FACTORS[n] * statistics.stdev(logs))
    return Judgement(
        verdict=verdict,
        estimate=math.exp(statistics.median(logs)),
        low=math.exp(min(_lower_bound(logs), statistics.median(logs))),
        high=math.exp(sorted(logs)[n - 1 - allowed]),
        limit=limit,
        launches=n,
        detectable=detectable,
        reasons=reasons,
        wants=wants,
    )
