"""A scheduler that plays what a test tells it to, and counts what it is asked."""

from __future__ import annotations

from perf.cluster.scheduler import Phase, SchedulerError, Seen


class FakeScheduler:
    """Answers `query` from a list of answers a job; the last one stays. None: the queue does not have it."""

    def __init__(self, plays=None, accounts=None, described=None):
        self.plays = plays or {}
        self.accounts = accounts
        self.described = described or {}
        self.submitted: list[str] = []
        self.cancelled: list[str] = []
        self.queries = 0
        self.asked_accounts = 0
        self.refuse: dict[str, str] = {}
        self.away = False
        self.on_query = lambda: None

    def submit_words(self, request):
        return ["fake-submit", request.name]

    def submit(self, request):
        name = request.name.partition(".")[2]
        if name in self.refuse:
            raise SchedulerError(self.refuse[name])
        self.submitted.append(name)
        return f"id-{name}"

    def query(self, jobs):
        self.queries += 1
        self.on_query()
        if self.away:
            raise SchedulerError("Unable to contact slurm controller")
        found = {}
        for job in jobs:
            plays = self.plays.get(job.removeprefix("id-"), [running()])
            answer = plays[0]
            if len(plays) > 1:
                plays.pop(0)
            if answer is not None:
                found[job] = answer
        return found

    def account(self, jobs, since):
        self.asked_accounts += 1
        if self.accounts is None:
            return None
        return {job: self.accounts[job] for job in jobs if job in self.accounts}

    def describe(self, jobs):
        return {job: self.described[job] for job in jobs if job in self.described}

    def cancel(self, jobs):
        if self.away:
            raise SchedulerError("Unable to contact slurm controller")
        self.cancelled += jobs

    def hosts(self):
        return ["n1", "n2", "n3"]


def running(nodes="n1"):
    return Seen(Phase.RUNNING, "RUNNING", nodes=nodes, started=1.0)


def pending(reason="Resources"):
    return Seen(Phase.PENDING, "PENDING", reason=reason)


def ended(phase=Phase.COMPLETED, word="COMPLETED", **more):
    return Seen(phase, word, **{"status": 0, "signal": 0, **more})
