"""The `limits` fixture: judges measurements, asks for more launches where a look is undecided, records the verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from perf import records
from perf.catalogue import GROUPS, Group, Member, Pair
from perf.contract import LaunchRecord
from perf.limits import Limit, Override, overridden
from perf.profiles import Profile
from perf.suite.diagnosing import WITHOUT_PHASES
from perf.suite.finishing import Finisher, changed, not_judged
from perf.suite.fitness import (
    invalid_in_words,
    mixed_stacks,
    mixed_ways,
    other_clocks,
    unfit_in_words,
    unsteady_in_words,
)
from perf.suite.floors import confirming, floor_judgement, low_power
from perf.suite.plan import launches_planned
from perf.suite.question import Question
from perf.suite.source import Measurement, Source, alike
from perf.suite.two_stacks import (
    NEW,
    OLD,
    Comparison,
    Explain,
    margin_of,
    question_of,
    split,
    unlike_work,
)
from perf.verdict.bound import gain_in_words
from perf.verdict.comparison import compare
from perf.verdict.fixed import judge_ratio, judge_share
from perf.verdict.known import Library
from perf.verdict.metrics import METRICS
from perf.verdict.one_sample import judge_one_sample
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.plausible import negative_share, too_efficient
from perf.verdict.portable import judge_portable
from perf.verdict.scaling import with_rate

Second = Callable[[Sequence[Measurement], Judgement], Judgement]
"""Looks at a decided judgement of a ratio, and at its sides (the judged one first), once more."""


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
    library
        What the system is known to do.
    earlier
        A member's launches in the run that this one confirms; none where it confirms no other.
    margin
        By how much a step may be longer with the new one of two stacks; None for the reference's or the usual one.
    surprise
        Told why a judgement was expected to fail that passed.
    overrides
        A site's own limits, by metric.
    require_references
        Whether `unreferenced` fails.
    explain
        Says why a comparison came out as it did, with launches of its own; None where nobody wants to know.
    """

    def __init__(
        self,
        source: Source,
        test: str,
        profile: Profile,
        run: str,
        record: Callable[[records.VerdictRecord], None],
        *,
        library: Library,
        require_references: bool,
        explain: Explain | None = None,
        earlier: Callable[[Member], list[LaunchRecord]] | None = None,
        margin: float | None = None,
        surprise: Callable[[str], None] | None = None,
        overrides: Mapping[str, Override] | None = None,
    ) -> None:
        self._source = source
        self._test = test
        self._profile = profile
        self._library = library
        self._earlier = earlier or (lambda member: [])
        self._margin = margin
        self._overrides = overrides or {}
        self._explain = explain
        self._finisher = Finisher(
            source,
            test,
            run,
            record,
            library=library,
            overrides=self._overrides,
            require_references=require_references,
            surprise=surprise or (lambda reason: None),
        )

    def floor(self, measured: Measurement, metric: str) -> None:
        """Hold a measurement against what its system is known to do."""
        what = METRICS[metric]
        sentence = f"{metric} of {measured.member.id}"
        earlier, left_out = confirming(self._earlier(measured.member), measured.first)
        launches = [*earlier, *measured.launches]
        # A floor is held on each node by itself, so launches from several hosts are no mixture here.
        unfit = (*mixed_stacks(launches), *mixed_ways(launches), *invalid_in_words([measured]))
        if unfit:
            question = Question(metric, what.unit, measured.member, None, None, sentence, floor=True)
            self._finisher.finish(question, not_judged([measured], None, unfit), [measured])
            return
        judgement, known = floor_judgement(launches, what, self._library)
        limit = known.floor.bound if known else None
        centre = known.floor.centre if known else None
        question = Question(
            metric, what.unit, measured.member, None, limit, sentence, floor=True, reference=centre
        )
        if judgement.verdict is Verdict.PASS:
            idle = low_power(launches, self._library)
            if idle:
                judgement = changed(judgement, Verdict.INVALID, idle)
        judgement = self._steady(judgement, [measured])
        judgement = dataclasses.replace(judgement, reasons=(*judgement.reasons, *left_out))
        self._finisher.finish(question, judgement, [measured], known)

    def ratio(
        self, pair: Pair, limit: Limit, *, can_be_faster: bool = False, second: Second | None = None
    ) -> None:
        """Require that the step of `pair.new` takes at most `limit` times the step of `pair.base`.

        Unless `can_be_faster`, a `new` that takes less than 1 / 1.05 of the base's time did not do the work. `second`
        looks at a decided judgement once more: it explains it, or holds it against something else.
        """
        limit = overridden(limit, self._overrides)
        question = Question(
            limit.metric,
            limit.unit,
            pair.new,
            pair.base,
            limit.value,
            f"step of {pair.new.id} ÷ {pair.base.id}",
        )

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            found = judge_ratio(sides[0].step_times, sides[1].step_times, limit=limit.value, cap=cap)
            return second(sides, found) if second and found.verdict is not None else found

        def too_good(sides: Sequence[Measurement]) -> tuple[str, ...]:
            return () if can_be_faster else too_efficient(sides[1].step_times, sides[0].step_times)

        self._decide(question, (pair.new, pair.base), judge, too_good)

    def scaling(self, pair: Pair, limit: Limit) -> None:
        """Require that a step on several devices takes at most `limit` times that on one, and judge it with the rate.

        Where one device became faster than it is known to be, and several give what they are known to give, the ratio
        is larger and nothing scales worse (`perf.verdict.scaling`).
        """

        def second(sides: Sequence[Measurement], found: Judgement) -> Judgement:
            (rate, many), (alone, one) = (
                floor_judgement(side.launches, METRICS["throughput"], self._library) for side in sides
            )
            certain = one is not None and not one.floor.provisional
            return with_rate(
                found,
                rate,
                certain=many is not None and not many.floor.provisional,
                faster=alone.estimate / one.floor.centre if one is not None and certain else None,
            )

        self.ratio(pair, limit, can_be_faster=pair.new.variant.batch is not None, second=second)

    def share(self, full: Member, synthetic: Member, limit: Limit, of: str = "loader") -> None:
        """Require that the part of `full`'s step that `synthetic` does without, 1 - T(synthetic) / T(full), is small.

        `of` says whose part it is: the loader's, or that of communication, which `synthetic` leaves out.
        """
        limit = overridden(limit, self._overrides)
        question = Question(
            limit.metric, limit.unit, full, synthetic, limit.value, f"{of}'s share of a step of {full.id}"
        )

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            return judge_share(sides[1].step_times, sides[0].step_times, limit=limit.value, cap=cap)

        def too_good(sides: Sequence[Measurement]) -> tuple[str, ...]:
            # Without communication ranks drift apart and meet no barrier: noise may make that the slower one.
            return negative_share(sides[1].step_times, sides[0].step_times) if of == "loader" else ()

        self._decide(question, (full, synthetic), judge, too_good)

    def rung(self, pair: Pair, limit: Limit) -> None:
        """Require that an optimization makes no step longer than `limit` times; say what it gains, or why nothing."""
        limit = overridden(limit, self._overrides)
        question = Question(
            limit.metric,
            limit.unit,
            pair.new,
            pair.base,
            limit.value,
            f"step of {pair.new.id} ÷ {pair.base.id}",
        )

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            found = judge_ratio(sides[0].step_times, sides[1].step_times, limit=limit.value, cap=cap)
            if found.verdict is None or not math.isfinite(found.estimate):
                return found
            # A loop that waits for each of its copies is never ahead of its device: the one that does not wait tells.
            telling = sides[0 if "non_blocking" in pair.new.variant.optimizations else 1]
            words = gain_in_words(found, telling.drain_steps, telling.wait_share)
            return dataclasses.replace(found, reasons=(words, *found.reasons))

        self._decide(question, (pair.new, pair.base), judge, lambda sides: ())

    def compare(
        self,
        group: Group,
        metric: str,
        values: Callable[..., list[float]],
        *,
        rule: Comparison = compare,
    ) -> None:
        """Require that the new stack is not worse than the old one by a metric's margin (`perf.suite.two_stacks`).

        Parameters
        ----------
        group
            A comparison: one variant, or two whose quotient is compared, on two stacks.
        values
            Takes the measurements of a side; returns one number a launch, of which more is worse.
        rule
            How two sides are judged: ratios, or differences of shares.
        """
        margin = margin_of(metric, group, self._margin, self._library, self._overrides)
        question = question_of(group, metric, margin, share=rule is not compare)

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            old, new = split(group, sides)
            found = [values(*side) for side in (new, old)]
            if any(len(of) != min(len(m.launches) for m in sides) for of in found):
                return not_judged(sides, None, (f"the launches do not all hold a number for {metric}",))
            return rule(found[0], found[1], margin=margin, cap=cap)

        def why(judgement: Judgement) -> tuple[str, ...]:
            return self._explain(self._test, metric, group, judgement) if self._explain else ()

        self._decide(
            question,
            group.members,
            judge,
            lambda sides: (),
            unlike=lambda sides: unlike_work(group, sides),
            why=why,
        )

    def same_work(self, group: Group) -> None:
        """Require that two stacks did the same work; what did less is `invalid`, and its time no answer."""
        sides = self._source.sides(self._test, group.members)
        question = Question(
            "work", "", group.of_side(NEW)[0], group.of_side(OLD)[0], None, f"work of {group.name}"
        )
        reasons = (*unfit_in_words(sides), *unlike_work(group, sides))
        if reasons:
            self._finisher.finish(question, not_judged(sides, None, reasons), sides)

    def portable(
        self,
        member: Member,
        bound: str,
        known: Sequence[float],
        tolerance: float,
        values: Callable[[Measurement], list[float]],
    ) -> None:
        """Require that a fraction of the machine's own rate is not far below the smallest one on known systems."""
        limit = tolerance * min(known) if known else None
        sentence = f"fraction of {bound} that {member.id} reaches"
        question = Question(f"portable_{bound}", "fraction", member, None, limit, sentence)

        def judge(sides: Sequence[Measurement], cap: int) -> Judgement:
            return judge_portable(values(sides[0]), known, tolerance=tolerance, cap=cap)

        self._decide(question, (member,), judge, lambda sides: ())

    def tell(
        self, metric: str, unit: str, measured: Measurement, estimate: float, sentences: Sequence[str]
    ) -> None:
        """Record what was found out about a measurement and is held against no limit."""
        judgement = Judgement(
            verdict=Verdict.PASS,
            estimate=estimate,
            low=math.nan,
            high=math.nan,
            limit=math.nan,
            launches=len(measured.launches),
            detectable=None,
            reasons=tuple(sentences),
            wants=0,
        )
        unfit = unfit_in_words([measured])
        if unfit:
            judgement = not_judged([measured], None, unfit)
        self._finisher.finish(
            Question(metric, unit, measured.member, None, None, f"{metric} of {measured.member.id}"),
            judgement,
            [measured],
        )

    def one_sample(
        self, member: Member, value: Callable[[Measurement], list[float]], limit: Limit, sentence: str
    ) -> None:
        """Require that a quantity with one value a launch is at most `limit`."""
        limit = overridden(limit, self._overrides)
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
        *,
        unlike: Callable[[Sequence[Measurement]], tuple[str, ...]] = lambda sides: (),
        why: Callable[[Judgement], tuple[str, ...]] = lambda judgement: (),
    ) -> None:
        cap = self._cap(members[0])
        while True:
            sides = alike(*self._source.sides(self._test, members))
            unfit = (*unfit_in_words(sides), *unlike(sides))
            if unfit:
                judgement = not_judged(sides, question.limit, unfit)
                break
            judgement = judge(sides, cap)
            if judgement.verdict is not None:
                break
            if not self._source.more(self._test, members, judgement.wants):
                cap = min(len(side.launches) for side in sides)
        if judgement.verdict is Verdict.PASS:
            reasons = too_good(sides)
            if reasons:
                judgement = changed(judgement, Verdict.INVALID, reasons)
        judgement = self._steady(judgement, sides)
        clocks = () if question.metric in WITHOUT_PHASES else other_clocks(sides)
        judgement = dataclasses.replace(judgement, reasons=(*judgement.reasons, *why(judgement), *clocks))
        self._finisher.finish(question, judgement, sides)

    @staticmethod
    def _steady(judgement: Judgement, sides: Sequence[Measurement]) -> Judgement:
        """Return a judgement; where too many launches of a side drift it decides nothing."""
        unsteady = unsteady_in_words(sides)
        if unsteady and judgement.verdict in (Verdict.PASS, Verdict.FAIL):
            return changed(judgement, Verdict.INCONCLUSIVE, unsteady)
        return judgement

    def _cap(self, member: Member) -> int:
        """Return how many launches a side a judgement may come to: a group that is only looked at has one."""
        planned = launches_planned(GROUPS[member.group], self._profile)
        return planned if planned < self._profile.launches else self._profile.cap
