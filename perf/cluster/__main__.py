"""``python -m perf.cluster``: run the suite as jobs; follow, cancel and show such runs later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from perf.ending import finish

USAGE = """\
usage: python -m perf.cluster --site=FILE [--stack=NAME] [options] [pytest's options]
       python -m perf.cluster attach RUN     follow a run again, from another shell
       python -m perf.cluster cancel RUN     cancel its jobs and keep what they have left
       python -m perf.cluster status RUN     show it once (--json for scripts)
       python -m perf.cluster lint SCRIPT    say which known traps a batch script of your own has
`python -m perf.cluster --help` lists the options; docs/sites.md explains site files."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if words is None else words)
    commands: dict[str, Callable[[list[str]], int]] = {
        "run": _run,
        "attach": _attach,
        "cancel": _cancel,
        "status": _status,
        "lint": _lint,
    }
    if not arguments:
        print(USAGE, file=sys.stderr)
        return 4
    if arguments[0] in commands:
        return commands[arguments[0]](arguments[1:])
    return _run(arguments)


def _run(words: list[str]) -> int:
    from perf.cluster.command_run import main as command

    return command(words)


def _attach(words: list[str]) -> int:
    from perf.cluster.command_later import attach

    return attach(words)


def _cancel(words: list[str]) -> int:
    from perf.cluster.command_later import cancel

    return cancel(words)


def _status(words: list[str]) -> int:
    from perf.cluster.command_later import status

    return status(words)


def _lint(words: list[str]) -> int:
    from perf.cluster.lint.command import main as command

    return command(words)


def _interruptible() -> int:
    try:
        return main()
    except KeyboardInterrupt:
        # Jobs are cancelled where they are followed; here nothing is left but a report, or a question.
        print("stackproof: interrupted", file=sys.stderr)
        return 2


if __name__ == "__main__":
    finish(_interruptible)
