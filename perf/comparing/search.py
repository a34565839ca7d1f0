"""The first bad one of several stacks: comparisons with the first, as few as a binary search needs."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from perf.machine import REPOSITORY
from perf.records import LATEST
from perf.report.text import fit
from perf.suite.outcomes import EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_INVALID, EXIT_NOTHING_JUDGED
from perf.verdict.bisect import Found, next_to_ask, result
from perf.verdict.outcome import Verdict

__all__ = ["run", "sentence"]

ANSWERS = {
    0: Verdict.PASS,
    EXIT_FAILED: Verdict.FAIL,
    EXIT_INCONCLUSIVE: Verdict.INCONCLUSIVE,
    EXIT_INVALID: Verdict.INVALID,
    EXIT_NOTHING_JUDGED: Verdict.UNREFERENCED,
}
"""What a comparison's exit status says of the newer stack. Others (interrupted, a wrong option) are no answer."""


def run(
    stacks: Sequence[str],
    rest: Sequence[str],
    command: Callable[[str, str, Sequence[str]], list[str]],
    *,
    ask: Callable[[Sequence[str]], int] | None = None,
) -> int:
    """Search, say what was found, and return the exit status.

    Parameters
    ----------
    stacks
        In order; the first is known to be good.
    rest
        pytest's options for every comparison.
    command
        Returns the command that compares two stacks.
    ask
        Runs a command and returns its exit status; as a process of its own if None.

    Returns
    -------
    int
        0 where no stack is bad, 1 where the first bad one was found; 10 and 11 where a comparison was inconclusive or
        invalid, 12 where it judged nothing; pytest's own status where it was interrupted.
    """
    ask = ask or _ask
    answers: dict[int, Verdict] = {}
    folders: dict[int, str] = {}
    while (place := next_to_ask(len(stacks), answers)) is not None:
        _say(f"bisect: comparing {stacks[place]} with {stacks[0]}, comparison {len(answers) + 1}")
        status = ask(command(stacks[0], stacks[place], rest))
        if status not in ANSWERS:
            _say(
                f"bisect: the comparison ended with status {status}, so the search ends here without an answer"
            )
            return status
        answers[place] = ANSWERS[status]
        folders[place] = _folder(rest)
    for place, stack in enumerate(stacks):
        word = "taken as good" if place == 0 else str(answers.get(place, "not asked"))
        _say(f"  {word:<13}  {stack}{'  ' + folders[place] if folders.get(place) else ''}")
    found = result(len(stacks), answers)
    _say(f"bisect: {sentence(stacks, found, answers)}")
    if found.unanswered is not None:
        return next(status for status, verdict in ANSWERS.items() if verdict is answers[found.unanswered])
    return 0 if found.first_bad is None else EXIT_FAILED


def sentence(stacks: Sequence[str], found: Found, answers: dict[int, Verdict]) -> str:
    """Say what a search found."""
    if found.unanswered is not None:
        return (
            f"no answer: {stacks[found.unanswered]} against {stacks[0]} was {answers[found.unanswered]}. Known to be "
            f"good: up to {stacks[found.last_good]}. A wider margin, --launches=16 or a quieter node may answer."
        )
    if found.first_bad is None:
        return f"none is bad: {stacks[-1]} keeps up with {stacks[0]}"
    return (
        f"the first bad one is {stacks[found.first_bad]}; {stacks[found.first_bad - 1]} before it is good "
        f"({len(answers)} comparisons)"
    )


def _ask(words: Sequence[str]) -> int:
    """Run a comparison to its end. It leads a session, so that an interrupt reaches it from here, and only once."""
    process = subprocess.Popen(list(words), cwd=REPOSITORY, start_new_session=True)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)


def _folder(rest: Sequence[str]) -> str:
    """Return the run's folder, which ``latest`` points at now; '' where there is none."""
    results = "results"
    for place, word in enumerate(rest):
        if word == "--results" and place + 1 < len(rest):
            results = rest[place + 1]
        elif word.startswith("--results="):
            results = word.partition("=")[2]
    link = Path(REPOSITORY, results, LATEST)
    return str(link.resolve()) if link.exists() else ""


def _say(text: str) -> None:
    print(fit(text, sys.stdout.encoding), flush=True)
