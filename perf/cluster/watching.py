"""Submit jobs, follow them with one query a poll, and find out how each ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from perf.cluster.folders import JobFolder, RunFolder, Submission
from perf.cluster.jobs import Job
from perf.cluster.proof import End, Ending, Facts, decide
from perf.cluster.scheduler import Phase, Request, Scheduler, SchedulerError, Seen, Usage
from perf.cluster.sites import Site

HOPELESS = (
    "DependencyNeverSatisfied",
    "BadConstraints",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "InvalidAccount",
    "InvalidQOS",
    "AccountNotAllowed",
    "JobHeldAdmin",
    "QOSMaxNodePerUserLimit",
    "QOSMaxGRESPerJob",
    "QOSMaxNodePerJobLimit",
    "QOSMaxWallDurationPerJobLimit",
    "AssocMaxNodePerJobLimit",
    "AssocMaxWallDurationPerJobLimit",
)
"""Reasons of a waiting job that no time mends; it is given up at once, with the reason."""

UNANSWERED_SECONDS = 1800.0
"""A controller that is restarted or upgraded is away for minutes. After half an hour the run is left alone: its jobs go
on, and `attach` follows them again."""

GONE_LOOKS = 2
"""Empty answers in a row before a job counts as gone: just after a submission, or beside a restarting controller, a
queue may lack a job that is there."""


class Unanswered(Exception):
    """The scheduler has not answered for too long; the jobs may still run."""


@dataclass
class Followed:
    """One job as the watcher knows it."""

    job: Job
    folder: JobFolder
    id: str = ""
    submitted: float = 0.0
    seen: Seen | None = None
    ran: bool = False
    requeued: bool = False
    ours: str = ""
    looks_without: int = 0
    over_since: float | None = None
    """When the queue stopped having it, or said that it had ended (monotonic)."""
    ending: Ending | None = None
    usage: Usage | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def live(self) -> bool:
        """Whether it is in the scheduler's hands."""
        return bool(self.id) and self.ending is None and self.over_since is None


class Watcher:
    """Follows the jobs of one run.

    Parameters
    ----------
    run
        The run's folder.
    submission
        What was asked for.
    site
        How the scheduler is to be treated.
    scheduler
        Who runs the jobs.
    say
        Told each change in a sentence.
    clock
        Monotonic seconds, for waiting.
    """

    def __init__(
        self,
        run: RunFolder,
        submission: Submission,
        site: Site,
        scheduler: Scheduler,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._site = site
        self._scheduler = scheduler
        self._say = say
        self._clock = clock
        self._most = submission.most_jobs
        self._unanswered_since: float | None = None
        self._asked_queue = False
        self.queries = 0
        self.jobs = [self._followed(job) for job in submission.jobs]

    def _followed(self, job: Job) -> Followed:
        """Take up a job where an earlier watcher left it."""
        followed = Followed(job, self._run.job(job.name))
        known = followed.folder.submitted()
        if known is not None:
            followed.id, followed.submitted = known
        ended = followed.folder.ending()
        if ended is not None:
            followed.ending, followed.usage = ended
        return followed

    @property
    def over(self) -> bool:
        """Whether it is known of every job how it ended."""
        return all(followed.ending is not None for followed in self.jobs)

    def step(self) -> None:
        """Submit what may be submitted, and look once at everything that is in the scheduler's hands.

        Raises
        ------
        Unanswered
            If the scheduler has not answered for half an hour.
        """
        stopped = self._run.cancelled()
        if stopped:
            self._stop(stopped)
        self._submit_more()
        live = [followed for followed in self.jobs if followed.live]
        over = [f for f in self.jobs if f.over_since is not None and f.ending is None]
        # One question a step: where there are both, the queue and the accounting take turns.
        if live and not (over and self._asked_queue):
            self._asked_queue = True
            self._look(live)
        elif over:
            self._asked_queue = False
            self._conclude(over)

    def cancel(self, why: str) -> list[str]:
        """Cancel every job that may still run, and give up the rest. Returns the ids that were cancelled.

        Raises
        ------
        SchedulerError
            If the scheduler refuses or does not answer: the jobs may go on.
        """
        live = [followed for followed in self.jobs if followed.id and followed.ending is None]
        if live:
            self._scheduler.cancel([followed.id for followed in live])
        for followed in self.jobs:
            if followed.ending is None:
                followed.ours = why
                followed.ran = followed.ran or followed.folder.started() is not None
                self._end(followed, decide(self._facts(followed)))
        return [followed.id for followed in live]

    def _stop(self, why: str) -> None:
        """Somebody has cancelled the run from another shell: submit no more, and wait for the rest to end."""
        for followed in self.jobs:
            if followed.ending is None and not followed.ours:
                followed.ours = why
                if not followed.id:
                    followed.ran = False
                    self._end(followed, decide(self._facts(followed)))

    # --- submitting

    def _submit_more(self) -> None:
        running = sum(1 for followed in self.jobs if followed.live)
        for followed in self.jobs:
            if followed.id or followed.ending is not None:
                continue
            if self._most and running >= self._most:
                return
            try:
                followed.id = self._scheduler.submit(
                    request_for(followed.job, followed.folder, self._run.path.name)
                )
            except SchedulerError as error:
                self._end(followed, Ending(End.NOT_SUBMITTED, str(error)))
                continue
            followed.submitted = time.time()
            followed.folder.note_submitted(followed.id)
            running += 1
            self._say(f"{followed.job.name}: submitted as {followed.id}")

    # --- looking

    def _look(self, live: list[Followed]) -> None:
        self.queries += 1
        try:
            found = self._scheduler.query([followed.id for followed in live])
        except SchedulerError as error:
            now = self._clock()
            if self._unanswered_since is None:
                self._unanswered_since = now
                self._say(f"the scheduler does not answer: {error}")
            if now - self._unanswered_since > UNANSWERED_SECONDS:
                raise Unanswered(
                    f"the scheduler has not answered for {UNANSWERED_SECONDS / 60:.0f} minutes; the jobs may go on. "
                    f"Follow them again with: python -m perf.cluster attach {self._run.path}"
                ) from error
            return
        if self._unanswered_since is not None:
            self._unanswered_since = None
            self._say("the scheduler answers again")
        for followed in live:
            self._take(followed, found.get(followed.id))

    def _take(self, followed: Followed, seen: Seen | None) -> None:
        before = followed.seen
        if seen is None:
            followed.looks_without += 1
            # The end marker says that it has run to its end; without one an empty answer is asked for again.
            if followed.folder.marker() is not None or followed.looks_without >= GONE_LOOKS:
                followed.over_since = self._clock()
            return
        followed.looks_without = 0
        followed.seen = seen
        if before is None or (before.phase, before.nodes) != (seen.phase, seen.nodes):
            where = f" on {seen.nodes}" if seen.phase is Phase.RUNNING and seen.nodes else ""
            why = f" ({seen.reason})" if seen.phase is Phase.PENDING and seen.reason else ""
            self._say(f"{followed.job.name} ({followed.id}): {seen.phase}{where}{why}")
        if seen.phase is Phase.REQUEUED or (seen.phase is Phase.PENDING and followed.ran):
            followed.requeued = True
            self._cancel_one(followed, "")
            followed.over_since = self._clock()
        elif seen.phase is Phase.RUNNING:
            followed.ran = True
        elif seen.phase.ended:
            followed.over_since = self._clock()
        elif seen.phase is Phase.PENDING:
            self._check_waiting(followed, seen)

    def _check_waiting(self, followed: Followed, seen: Seen) -> None:
        hours = (time.time() - followed.submitted) / 3600
        if any(reason in seen.reason for reason in HOPELESS):
            self._cancel_one(followed, f"it can never start ({seen.reason})")
        elif hours > self._site.scheduler.pending_hours:
            limit = f"{self._site.scheduler.pending_hours:g} h (pending_hours)"
            self._cancel_one(
                followed, f"it has waited for more than {limit}; its last reason was {seen.reason or 'none'}"
            )

    def _cancel_one(self, followed: Followed, why: str) -> None:
        try:
            self._scheduler.cancel([followed.id])
        except SchedulerError as error:
            self._say(f"{followed.job.name} ({followed.id}) could not be cancelled: {error}")
            return
        if why:
            followed.ours = why
            followed.over_since = self._clock()

    # --- concluding

    def _conclude(self, over: list[Followed]) -> None:
        """Find out how jobs ended that are over: one question to the accounting for all of them."""
        settled = [f for f in over if f.ours or f.requeued]
        asked = [f for f in over if f not in settled]
        accounts: dict[str, tuple[Seen, Usage]] | None = {}
        if asked:
            self.queries += 1
            accounts = self._scheduler.account([f.id for f in asked], min(f.submitted for f in asked))
        patience = 0.0 if accounts is None else self._site.scheduler.accounting_seconds
        late = []
        for followed in asked:
            seen, usage = (accounts or {}).get(followed.id, (None, None))
            if seen is not None and seen.phase.ended:
                followed.seen, followed.usage = seen, usage
                settled.append(followed)
            elif self._clock() - (followed.over_since or 0.0) >= patience:
                late.append(followed)
        self._ask_the_controller([f for f in late if f.seen is None or not f.seen.phase.ended])
        for followed in settled + late:
            followed.requeued = followed.requeued or followed.folder.started_again()
            followed.ran = followed.ran or followed.folder.started() is not None
            self._end(followed, decide(self._facts(followed)))

    def _ask_the_controller(self, unknown: list[Followed]) -> None:
        """Ask for what neither the accounting nor the queue has told."""
        if not unknown:
            return
        self.queries += 1
        found = self._scheduler.describe([followed.id for followed in unknown])
        for followed in unknown:
            followed.seen = found.get(followed.id, followed.seen)

    def _facts(self, followed: Followed) -> Facts:
        seen = followed.seen if followed.seen is not None and followed.seen.phase.ended else None
        return Facts(
            marker=followed.folder.marker(),
            seen=seen,
            tests=len(followed.job.node_ids),
            missing=followed.folder.missing(followed.job),
            ours=followed.ours,
            requeued=followed.requeued,
            ran=followed.ran,
        )

    def _end(self, followed: Followed, ending: Ending) -> None:
        followed.ending = ending
        followed.folder.note_ending(ending, followed.usage)
        name = f"{followed.job.name} ({followed.id})" if followed.id else followed.job.name
        self._say(f"{name}: {ending.end}. {ending.sentence}")


def request_for(job: Job, folder: JobFolder, run: str) -> Request:
    """Return the request that submits a job. Its name is the run's and its own, so that it can be found by it."""
    return Request(
        name=f"{run}.{job.name}",
        script=folder.script,
        output=folder.stdout,
        folder=folder.path,
        nodes=job.nodes,
        gpus=job.gpus,
        cores=job.cores,
        seconds=job.seconds,
        exclusive=job.exclusive,
        hold_to=job.hold_to,
    )
