"""The `limits` fixture: judges measurements, asks for more launches where a look is undecided, records the verdict."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perf import records
from perf.catalogue import GROUPS, Member, Pair
from perf.limits import Limit
from perf.profiles import Profile
from perf.suite.bench import Measurement, Source
from perf.suite.fitness import replaced_in_words, unsteady_in_words
from perf.suite.outcomes import LimitMissed, Unproven
from perf.suite.plan import launches_planned
from perf.verdict.bound import gain_in_words
from perf.verdict.fixed import judge_ratio, judge_share
from perf.verdict.one_sample import judge_one_sample
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.plausible import negative_share, too_efficient


@dataclass(frozen=True)
class Question:
    """What is judged: words for the record and for the person who reads it."""

    metric: str
    unit: str
    variant: Member
    against: Member | None
    limit: float | None
    sentence: str


class Judge:
    """Judges for one test.

    Parameters
    ----------
    source
        Where launches come from.
    test
        The test's name: the key of launches that are added for it.
    profile
        How many launches an undecided judgement may ask for.
    record
        Takes each verdict's record.
    require_references
        Whether `unreferenced` fails.
    """

    def __init__(
        self,
        source: Source,
        test: str,
        profile: Profile,
        run: str,
        record: Callable[[records.VerdictRecord], None],
        *,
        require_references: bool,
    ) -> None:
        self._source = source
        self._test = test
        self._profile = profile
        self._run = run
        self._record = record
        self._require_references = require_references

    def floor(self, measured: Measurement, metric: str) -> None:
        """Hold a measurement against what its system is known to do.

        References come with calibration; until a system has one, its numbers are measured and not judged.
        """
        rates = [launch.samples_per_second for launch in measured.launches]
        judgement = Judgement(
            verdict=Verdict.UNREFERENCED,
            estimate=statistics.median(rates),
            low=min(rates),
            high=max(rates),
            limit=math.nan,
            launches=len(rates),
            detectable=None,
            reasons=(f"no reference for {measured.member.id} on this system",),
            wants=0,
        )
        unfit = _unfit([measured])
        if unfit:
            judgement = _not_judged([measured], None, unfit)
        question = Question(
            metric, "samples/s", measured.member, None, None, f"throughput of {measured.member.id}"
        )
        self._finish(question, judgement, [measured])

    def ratio(self, pair: Pair, limit: Limit, *, can_be_faster: bool = False) -> None:
        """Require that the step of `pair.new` takes at most `limit` times the step of `pair.base`.

        Unless `can_be_faster`, a `new` that takes less than 1 / 1.05 of the base's time did not do the work.
        """
        question = Question(
            limit.metric,
            limit.unit,
            pair.new,
            pair.base,
            limit.value,
            f"step of {pair.new.id} ÷ {pair.base.id}",
        )

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            return judge_ratio(sides[0].step_medians, sides[1].step_medians, limit=limit.value, cap=cap)

        def too_good(sides: Sequence[Measurement]) -> tuple[str, ...]:
            return () if can_be_faster else too_efficient(sides[1].step_medians, sides[0].step_medians)

        self._decide(question, (pair.new, pair.base), judge, too_good)

    def share(self, full: Member, synthetic: Member, limit: Limit) -> None:
        """Require that a loader's share of the step, 1 - T(synthetic) / T(full), is at most `limit`."""
        question = Question(
            limit.metric, limit.unit, full, synthetic, limit.value, f"loader's share of a step of {full.id}"
        )

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            return judge_share(sides[1].step_medians, sides[0].step_medians, limit=limit.value, cap=cap)

        def too_good(sides: Sequence[Measurement]) -> tuple[str, ...]:
            return negative_share(sides[1].step_medians, sides[0].step_medians)

        self._decide(question, (full, synthetic), judge, too_good)

    def rung(self, pair: Pair, limit: Limit) -> None:
        """Require that an optimization makes no step longer than `limit` times; say what it gains, or why nothing."""
        question = Question(
            limit.metric,
            limit.unit,
            pair.new,
            pair.base,
            limit.value,
            f"step of {pair.new.id} ÷ {pair.base.id}",
        )

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            found = judge_ratio(sides[0].step_medians, sides[1].step_medians, limit=limit.value, cap=cap)
            if found.verdict is None or not math.isfinite(found.estimate):
                return found
            words = gain_in_words(found.low, found.estimate, found.high, sides[1].drain_steps)
            return dataclasses.replace(found, reasons=(words, *found.reasons))

        self._decide(question, (pair.new, pair.base), judge, lambda sides: ())

    def tell(
        self, metric: str, unit: str, measured: Measurement, estimate: float, sentences: Sequence[str]
    ) -> None:
        """Record what was found out about a measurement and is held against no limit."""
        rates = (estimate, estimate, estimate)
        judgement = Judgement(
            Verdict.PASS, *rates, math.nan, len(measured.launches), None, tuple(sentences), wants=0
        )
        unfit = _unfit([measured])
        if unfit:
            judgement = _not_judged([measured], None, unfit)
        self._finish(
            Question(metric, unit, measured.member, None, None, f"{metric} of {measured.member.id}"),
            judgement,
            [measured],
        )

    def one_sample(
        self, member: Member, value: Callable[[Measurement], list[float]], limit: Limit, sentence: str
    ) -> None:
        """Require that a quantity with one value a launch is at most `limit`."""
        question = Question(limit.metric, limit.unit, member, None, limit.value, sentence)

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            return judge_one_sample(value(sides[0]), limit=limit.value, cap=cap)

        self._decide(question, (member,), judge, lambda sides: ())

    def _decide(
        self,
        question: Question,
        members: Sequence[Member],
        judge: Callable[[Sequence[Measurement], int], Judgement],
        too_good: Callable[[Sequence[Measurement]], tuple[str, ...]],
    ) -> None:
        cap = self._cap(members[0])
        while True:
            sides = self._source.sides(self._test, members)
            unfit = _unfit(sides)
            if unfit:
                judgement = _not_judged(sides, question.limit, unfit)
                break
            judgement = judge(sides, cap)
            if judgement.verdict is not None:
                break
            if not self._source.more(self._test, members, judgement.wants):
                cap = min(len(side.launches) for side in sides)
        if judgement.verdict is Verdict.PASS:
            reasons = too_good(sides)
            if reasons:
                judgement = _as(judgement, Verdict.INVALID, reasons)
        unsteady = unsteady_in_words(sides)
        if unsteady and judgement.verdict in (Verdict.PASS, Verdict.FAIL):
            judgement = _as(judgement, Verdict.INCONCLUSIVE, unsteady)
        self._finish(question, judgement, sides)

    def _cap(self, member: Member) -> int:
        """Return how many launches a side a judgement may come to: a group that is only looked at has one."""
        planned = launches_planned(GROUPS[member.group], self._profile)
        return planned if planned < self._profile.launches else self._profile.cap

    def _finish(self, question: Question, judgement: Judgement, sides: Sequence[Measurement]) -> None:
        oversubscribed = [side.member.id for side in sides if "oversubscribed" in side.first.flags]
        if oversubscribed:
            judgement = _as(
                judgement,
                Verdict.UNREFERENCED,
                (f"{oversubscribed[0]} is oversubscribed: it runs and is never judged",),
            )
        judgement = dataclasses.replace(judgement, reasons=(*judgement.reasons, *replaced_in_words(sides)))
        assert judgement.verdict is not None
        self._record(
            records.VerdictRecord(
                run=self._run,
                test=self._test,
                group=question.variant.group,
                variant=question.variant.id,
                against=question.against.id if question.against else "",
                metric=question.metric,
                unit=question.unit,
                estimate=_finite(judgement.estimate),
                low=_finite(judgement.low),
                high=_finite(judgement.high),
                limit=question.limit,
                verdict=judgement.verdict.value,
                launches=judgement.launches,
                detectable=judgement.detectable,
                reasons=list(judgement.reasons),
                statistical=question.limit is not None,
            )
        )
        if judgement.verdict is Verdict.PASS:
            return
        message = describe(question, judgement)
        unreferenced = judgement.verdict is Verdict.UNREFERENCED
        if judgement.verdict is Verdict.FAIL or (
            unreferenced and self._require_references and not oversubscribed
        ):
            raise LimitMissed(message)
        raise Unproven(judgement.verdict, message)


def describe(question: Question, judgement: Judgement) -> str:
    """Return a judgement in words: what, how much, how sure, and why."""
    text = question.sentence
    if math.isfinite(judgement.estimate):
        text += f": {judgement.estimate:.4g} {question.unit}"
        if math.isfinite(judgement.low) and math.isfinite(judgement.high):
            text += f" ({judgement.low:.4g} to {judgement.high:.4g})"
    if question.limit is not None:
        text += f", limit {question.limit:.4g}"
    text += f"; {judgement.launches} launch{'' if judgement.launches == 1 else 'es'}"
    text += " a side" if question.against else ""
    if judgement.detectable is not None and question.limit is not None:
        excess = f"{100 * judgement.detectable:.2g} {'points' if question.unit == 'share' else '%'}"
        text += f"; an excess of {excess} over the limit would have failed"
    return "; ".join([text, *judgement.reasons])


def _unfit(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return why launches of the sides cannot be judged: facts about the machine or the work, never their times."""
    launches = [launch for side in sides for launch in side.launches]
    mixed = [
        f"the launches come from different {what}, which can't be held against each other: {', '.join(found)}"
        for what, found in (
            ("hosts", sorted({" and ".join(sorted(set(launch.host))) for launch in launches})),
            ("stacks", sorted({f"torch {launch.stack.get('torch')}" for launch in launches})),
        )
        if len(found) > 1
    ]
    return (*mixed, *_invalid(sides))


def _invalid(sides: Sequence[Measurement]) -> tuple[str, ...]:
    return tuple(
        f"launch {launch.launch} of {side.member.id}: {reason}"
        for side in sides
        for launch in side.launches
        for reason in launch.reasons
        if not launch.valid
    )


def _not_judged(sides: Sequence[Measurement], limit: float | None, reasons: tuple[str, ...]) -> Judgement:
    """Return the judgement of launches that are not fit for one: no estimate, only why."""
    return Judgement(
        verdict=Verdict.INVALID,
        estimate=math.nan,
        low=math.nan,
        high=math.nan,
        limit=math.nan if limit is None else limit,
        launches=min(len(side.launches) for side in sides),
        detectable=None,
        reasons=reasons,
        wants=0,
    )


def _as(judgement: Judgement, verdict: Verdict, reasons: tuple[str, ...]) -> Judgement:
    return dataclasses.replace(judgement, verdict=verdict, reasons=(*reasons, *judgement.reasons), wants=0)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
