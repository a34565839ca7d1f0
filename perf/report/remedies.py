"""What to do about what a report shows: a sentence for each metric, verdict and way to die. Pure."""

from __future__ import annotations

from perf.verdict.references import RENAMED

__all__ = ["every_remedy", "for_failure", "for_verdict"]

_METRICS = {
    "loader_share": """
        Give the loader more workers or cores (the worker sweep shows where that stops to help), and look at the
        loader's line in the line profile: `python -m pytest perf -k loader --line-profile`.
    """,
    "ddp_overhead": """
        One rank talks to nobody, so this is the host's time in DDP's hooks: look at the phases (`--phases`), at the
        threads that a rank has, and at what differs in the stack.
    """,
    "scaling_overhead": """
        Look at the transport that NCCL chose (`NCCL_DEBUG=INFO`, then the launch's log), at peer-to-peer access and
        shared memory between the GPUs, and at the cores that each rank has.
    """,
    "ddp_over_dp": """
        DDP should never be slower than DataParallel: look at the backend in force, at the transport that NCCL chose,
        and at whether two ranks share a core or a GPU.
    """,
    "first_epoch_penalty": """
        Look at the start of the loader's workers, at a cold file cache, and at autotuning or compilation that runs in
        the first epoch.
    """,
    "throughput": """
        Compare the environment with the reference's, then the machine's component rates and the power and clock of the
        GPUs; a line profile names the part of the step that grew: `--line-profile`.
    """,
}

_VERDICTS = {
    "fail": """
        Look at the picture of its group for the launches behind it, then profile it: `--line-profile --phases`.
    """,
    "fact": """
        The message says what was expected and what was found. Facts do not depend on speed: running again will not
        help.
    """,
    "invalid": """
        Mend what the reason names (another user, throttling, fewer cores than promised), then measure again. Nothing
        that was left out was used.
    """,
    "inconclusive": """
        Measure with more launches (`--profile full`, `--launches 16`) or on a quieter node. The reasons say how many
        launches would answer.
    """,
    "unreferenced": """
        Nothing is wrong with it; there is no reference of this system yet. `--require-references` makes this a failure.
    """,
}

_DEATHS = {
    "SIGKILL": """
        Look at the job's memory limit, and at `dmesg` for the kernel's out-of-memory killer.
    """,
    "SIGBUS": """
        Look at `df /dev/shm`: the loader's workers hand their batches over there.
    """,
    "SIGTERM": """
        Look at the scheduler's log and at the job's time limit.
    """,
    "time limit": """
        Look at the stacks in the launch's folder (stack-*.txt): the rank that does not wait for the others is the one
        that hangs. `--launch-timeout` gives slow launches more time.
    """,
    "out of memory": """
        Another process may hold the GPU's memory (`nvidia-smi`), or the batch is too large for this card.
    """,
}

_READ_THE_LOG = (
    "Read the last lines of its log, here and in the launch's folder: the first error in them counts."
)


def every_remedy() -> dict[str, dict[str, str]]:
    """Return all remedies, by what they are for: a failed metric, a verdict, the way in which a launch ended."""
    return {
        kind: {name: " ".join(text.split()) for name, text in table.items()}
        for kind, table in (("metric", _METRICS), ("verdict", _VERDICTS), ("launch", _DEATHS))
    }


def for_verdict(verdict: str, metric: str) -> str:
    """Return what to do about a verdict: for a `fail` its metric's own words, where there are some."""
    own = _METRICS.get(RENAMED.get(metric, metric)) if verdict == "fail" else None
    return " ".join((own or _VERDICTS.get(verdict, "")).split())


def for_failure(status: str) -> str:
    """Return what to do about a launch that ended so."""
    found = next(
        (remedy for word, remedy in _DEATHS.items() if word.lower() in status.lower()), _READ_THE_LOG
    )
    return " ".join(found.split())
