"""``python -m perf.comparing OLD NEW``: compare two stacks; ``--bisect STACK …``: find the first bad one of several."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from perf.ending import finish
from perf.launch.telemetry.companion import interpreter
from perf.launch.text import harmless

USAGE = """\
usage: python -m perf.comparing OLD NEW [pytest's options]
       python -m perf.comparing --bisect STACK STACK STACK [...] [pytest's options]

Stacks come first. Each is the path of a Python that imports torch, or with --site=FILE the name of one of the site's.
OLD NEW    launches both in turn, in one allocation, and judges each variant; what moved is explained
--bisect   stacks in order, the first known to be good: finds the first bad one by comparisons with the first

  --margin 2%      slowdown that must not pass
  --budget 20min   time that it may take; the most telling variants come first, what does not fit is skipped and listed
  --why            explain what did not move too
  -k EXPRESSION    which variants
  --profile compare | compare-full | compare-smoke
More: docs/compare.md and `python -m pytest perf --help`."""

USAGE_STATUS = 4
"""pytest's own for a wrong command line."""


class WrongWords(ValueError):
    """A command line that can't be used. The message says what was expected."""


@dataclass(frozen=True)
class Wish:
    """What a command line asks for: stacks in order, whether to search among them, and pytest's options."""

    stacks: tuple[str, ...]
    bisect: bool
    rest: tuple[str, ...]


def read(words: Sequence[str]) -> Wish:
    """Read a command line. Pure.

    Raises
    ------
    WrongWords
        If it does not name two stacks, or at least three for a search.
    """
    bisect = bool(words) and words[0] == "--bisect"
    found = list(words[1:] if bisect else words)
    count = next((place for place, word in enumerate(found) if word.startswith("-")), len(found))
    stacks, rest = found[:count], found[count:]
    if "--bisect" in rest:
        raise WrongWords("--bisect comes first, then the stacks, then pytest's options")
    if bisect and len(stacks) < 3:
        raise WrongWords(f"--bisect needs three stacks or more, in order; got {len(stacks)}")
    if not bisect and len(stacks) != 2:
        raise WrongWords(f"two stacks are compared, the old one first; got {len(stacks)} before the options")
    if len(set(stacks)) < len(stacks) and bisect:
        raise WrongWords("a stack stands twice in the list")
    return Wish(tuple(stacks), bisect, tuple(rest))


def command(old: str, new: str, rest: Sequence[str]) -> list[str]:
    """Return the command that compares two stacks: pytest here, or as jobs where a site is named.

    In an allocation that one holds, ``--here`` beside ``--site`` runs it there.
    """
    site = any(word == "--site" or word.startswith("--site=") for word in rest)
    suite = ["-m", "perf.cluster", "run"] if site else ["-m", "pytest", "perf"]
    # One word each: pytest takes the value of an option that it does not know yet for a path.
    return [*interpreter(), *suite, f"--against={old}", f"--stack={new}", *_profile(rest), *rest]


def _profile(rest: Sequence[str]) -> list[str]:
    named = any(word == "--profile" or word.startswith("--profile=") for word in rest)
    return [] if named else ["--profile=compare"]


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status. A comparison takes this process's place."""
    arguments = list(sys.argv[1:] if words is None else words)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else USAGE_STATUS
    try:
        wish = read(arguments)
    except WrongWords as error:
        print(f"error: {error}\n\n{USAGE}", file=sys.stderr)
        return USAGE_STATUS
    if wish.bisect:
        from perf.comparing.search import run

        return run(wish.stacks, wish.rest, command)
    if wish.stacks[0] == wish.stacks[1]:
        print(
            f"note: both are the same stack, {harmless(wish.stacks[0])}: what differs is noise",
            file=sys.stderr,
        )
        # Before another program takes this process's place.
        sys.stderr.flush()
    found = command(wish.stacks[0], wish.stacks[1], wish.rest)
    # In this process's place, so that Ctrl-C and SIGTERM reach pytest itself, once.
    return os.execv(found[0], found)  # noqa: S606 - no shell is wanted: names of stacks are foreign text


if __name__ == "__main__":
    finish(main)
