"""Clean judgements: launches without a fault, in true order, none of them in two judgements of one question."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Sequence

from perf import contract, records
from perf.catalogue import GROUPS, Member
from perf.faults.selfcheck.carry import Where
from perf.faults.selfcheck.results import Clean
from perf.launch.forking import Servers
from perf.launch.launcher import launch
from perf.launch.server import CannotFork
from perf.limits import LOADER_SHARE
from perf.profiles import PROFILES, Profile
from perf.report.summary import launch_words
from perf.suite.bench import Bench
from perf.suite.judge import Judge
from perf.suite.outcomes import LimitMissed, Unproven
from perf.suite.plan import Context
from perf.verdict.comparison import compare
from perf.verdict.known import Library
from perf.verdict.looks import FIRST_LOOK
from perf.verdict.pace import step_times
from perf.verdict.spread import halves_in_true_order
from perf.verdict.system import System

__all__ = ["CLEAN", "Cleaner", "cleaner_of", "dealt"]

CLEAN = 30
"""Clean judgements of a self-check: of so many, a suite that fails one in ten clean runs would show one, mostly."""

CAP = 10
"""Launches a side up to which an undecided judgement asks for more, as profile ``quick`` does."""

GROUP = {"cpu": "loader@mnist_cnn-cpu", "cuda": "loader@mnist_cnn-gpu"}
"""Two sides that every machine can launch: the loader's share of a step."""

WIDE_MARGIN = 0.5
"""What the sides of equal launches are held against. Launches of the smallest network were seen to spread by 14 % on
GPUs and by more on shared cores: a margin below three times that can't be passed, and a false fail needs no margin."""


class Cleaner:
    """Makes clean judgements, each of launches of its own.

    Parameters
    ----------
    run
        Takes records, verdicts and events.
    launch
        Starts one launch.
    """

    def __init__(
        self,
        run: records.Run,
        launch: Callable[[contract.LaunchSpec], contract.LaunchRecord],
        *,
        device: str,
        cores: int,
        cache_dir: str,
    ) -> None:
        self._run = run
        self._launch = launch
        self._device = device
        self._profile = small_profile()
        self._context = Context(run.name, self._profile, cores, cache_dir, None)

    def judge(self, number: int) -> Clean:
        """Take launches and judge them; return what came of it. Starts launches."""
        began = time.monotonic()
        group = GROUPS[GROUP[self._device]]
        full, synthetic = (group.member("single", mode=mode) for mode in ("full", "synthetic"))
        bench = Bench(
            self._context,
            self._run,
            self._launch,
            functools.partial(_is_one_of, (full, synthetic)),
            launch_words,
            worker=f"clean{number:02d}",
        )
        found: list[records.VerdictRecord] = []
        judge = Judge(
            bench,
            f"clean[{number}]",
            self._profile,
            self._run.name,
            found.append,
            library=Library([], System("none", 0, None, None), "2026-01-01"),
            require_references=False,
        )
        verdict, reasons = "pass", []
        try:
            judge.share(full, synthetic, LOADER_SHARE)
        except LimitMissed as error:
            verdict, reasons = "fail", [str(error)]
        except Unproven as error:
            verdict, reasons = error.verdict.value, [str(error)]
        except Exception as error:  # noqa: BLE001 - whatever a clean launch dies of is an alarm, and told
            verdict, reasons = "failed", [str(error)]
        for record in found:
            self._run.append(records.VERDICTS, record)
        launches = found[-1].launches if found else 0
        what = f"{LOADER_SHARE.metric} of {full.id}"
        return Clean(number, what, verdict, launches, round(time.monotonic() - began, 1), reasons)


def small_profile() -> Profile:
    """Return smoke's sizes with looks up to `CAP` launches a side."""
    return dataclasses.replace(PROFILES["smoke"].with_launches(FIRST_LOOK), cap=CAP)


def _is_one_of(wanted: Sequence[Member], member: Member) -> bool:
    return member in wanted


def dealt(launches: Sequence[contract.LaunchRecord], first_number: int) -> Iterator[Clean]:
    """Deal launches of one variant and stack to two sides in the order in which they were made, and judge these.

    Parameters
    ----------
    launches
        Clean ones, of any variants, in the order in which they ended.
    first_number
        Number of the first judgement.

    Yields
    ------
    Clean
        One judgement for every ten valid launches of a variant. No launch is in two of them.
    """
    number = first_number
    for variant in dict.fromkeys(one.variant for one in launches):
        (steps,) = step_times([one for one in launches if one.variant == variant and one.valid])
        for start in range(0, len(steps) - 2 * FIRST_LOOK + 1, 2 * FIRST_LOOK):
            first, second = halves_in_true_order(steps[start : start + 2 * FIRST_LOOK])
            one = compare(second, first, margin=WIDE_MARGIN, cap=FIRST_LOOK)
            yield Clean(
                number,
                f"step_time of {variant}, dealt to two sides",
                str(one.verdict),
                one.launches,
                0.0,
                list(one.reasons),
            )
            number += 1


def cleaner_of(run: records.Run, where: Where, servers: Servers) -> Cleaner:
    """Return what makes clean judgements by fork, and by fresh launches where a stack can't be forked."""
    stack = where.stack

    def start(spec: contract.LaunchSpec) -> contract.LaunchRecord:
        if not servers.why_not(stack):
            # From then on `why_not` has the reason.
            with contextlib.suppress(CannotFork):
                return launch(dataclasses.replace(spec, launcher="fork"), stack, lock=None, servers=servers)
        return launch(spec, stack, lock=None)

    return Cleaner(run, start, device=where.device, cores=where.cores, cache_dir=where.cache_dir)
