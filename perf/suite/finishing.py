"""What becomes of a decided judgement: the reasons that are added, the diagnosis, the record, the test's outcome."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from perf import records
from perf.launch.validity import OVERSUBSCRIBED
from perf.limits import Override
from perf.suite.diagnosing import diagnosis_of
from perf.suite.fitness import replaced_in_words
from perf.suite.outcomes import ExpectedMiss, LimitMissed, Unproven
from perf.suite.question import Question, describe
from perf.suite.source import Measurement, Source
from perf.verdict.known import Known, Library
from perf.verdict.outcome import Judgement, Verdict


class Finisher:
    """Finishes the judgements of one test.

    Parameters
    ----------
    source
        Where launches come from that say why a judgement failed.
    test
        The test's name.
    run
        The run's name.
    record
        Takes each verdict's record.
    library
        What the system is known to do, and which failures are expected of it.
    overrides
        A site's own limits, by metric.
    require_references
        Whether `unreferenced` fails.
    surprise
        Told why a judgement was expected to fail that passed.
    """

    def __init__(
        self,
        source: Source,
        test: str,
        run: str,
        record: Callable[[records.VerdictRecord], None],
        *,
        library: Library,
        overrides: Mapping[str, Override],
        require_references: bool,
        surprise: Callable[[str], None],
    ) -> None:
        self._source = source
        self._test = test
        self._run = run
        self._record = record
        self._library = library
        self._overrides = overrides
        self._require_references = require_references
        self._surprise = surprise

    def finish(
        self,
        question: Question,
        judgement: Judgement,
        sides: Sequence[Measurement],
        known: Known | None = None,
    ) -> None:
        """Write a decided judgement down, and raise where it is no pass.

        Parameters
        ----------
        sides
            What was judged: one measurement, or those of two sides, of which the question's variant is one.
        known
            What the system is known to do, where the judgement is a floor's.

        Raises
        ------
        LimitMissed
            It failed, or is `unreferenced` where references are required.
        ExpectedMiss
            It failed, or could not be told, as it was expected to.
        Unproven
            It is anything else but a pass.
        """
        oversubscribed = [
            side.member.id for side in sides if any(OVERSUBSCRIBED in one.flags for one in side.launches)
        ]
        # What is not fit to be used stays so, and fails the run, however many workers it asked for.
        if oversubscribed and judgement.verdict is not Verdict.INVALID:
            judgement = changed(
                judgement,
                Verdict.UNREFERENCED,
                (f"{oversubscribed[0]} is oversubscribed: it runs and is never judged",),
            )
        told = replaced_in_words(sides)
        if question.metric in self._overrides:
            told += (f"The limit is this site's own: {self._overrides[question.metric].reason}.",)
        judgement = dataclasses.replace(judgement, reasons=(*judgement.reasons, *told))
        verdict = judgement.verdict
        assert verdict is not None
        expected = self._library.expected_failure(question.variant.id.partition("@")[0], question.metric)
        if expected and verdict is Verdict.PASS:
            said = (f"It was expected to fail ({expected.reason}) and passes: remove the expected failure.",)
            judgement = dataclasses.replace(judgement, reasons=(*said, *judgement.reasons))
        diagnosis = None
        if verdict is Verdict.FAIL and not expected:
            # A comparison's sides come old side first.
            judged_first = sorted(sides, key=lambda side: side.member != question.variant)
            diagnosis = diagnosis_of(self._source, judged_first, question.metric, self._library, known)
        low, high = judgement.bounds
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
                low=low,
                high=high,
                limit=question.limit,
                verdict=verdict.value,
                launches=judgement.launches,
                detectable=judgement.detectable,
                reasons=list(judgement.reasons),
                statistical=question.limit is not None,
                expected=expected.reason if expected else "",
                diagnosis=diagnosis.as_json() if diagnosis else {},
                reference=question.reference,
            )
        )
        if verdict is Verdict.PASS:
            if expected:
                self._surprise(expected.reason)
            return
        message = describe(question, judgement) + (f"\n{diagnosis.text}" if diagnosis else "")
        if expected and verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE):
            # Until it can be told: what is known to fail, and is too noisy to be seen failing, is no news either.
            raise ExpectedMiss(f"expected ({expected.reason}): {message}")
        unreferenced = verdict is Verdict.UNREFERENCED
        if verdict is Verdict.FAIL or (unreferenced and self._require_references and not oversubscribed):
            raise LimitMissed(message)
        raise Unproven(verdict, message)


def changed(judgement: Judgement, verdict: Verdict, reasons: tuple[str, ...]) -> Judgement:
    """Return a judgement that became another verdict, for reasons that come first; it asks for no more launches."""
    return dataclasses.replace(judgement, verdict=verdict, reasons=(*reasons, *judgement.reasons), wants=0)


def not_judged(sides: Sequence[Measurement], limit: float | None, reasons: tuple[str, ...]) -> Judgement:
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
