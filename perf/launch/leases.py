"""GPUs by lease: who on this node may use which card, so that xdist's workers, runs and users never share one.

A lease is one flock a card, named by the card's UUID, in the folder of the node's lock: it holds for every user, and
the kernel frees it when its holder dies. Requests are served in the order in which they came; those of one run that
nobody else's lies between in the order of their weight. One that can't be served yet keeps back what it
could use of the free cards, so that a request for all of them is not starved by a stream of requests for one.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.launch.claims import Claim, Claims, LockError
from perf.launch.lock import NO_NAME, REPEAT_SECONDS, holder_note, lock_folder, parse_holder, prepare_folder
from perf.launch.telemetry.reading import bare_uuid
from perf.launch.text import harmless
from perf.whole import whole

LOOK_SECONDS = 0.2
"""Between two looks of one who waits. A launch takes seconds at least."""

SETTLE_SECONDS = 1.0
"""For which the first request of a process waits for those that a run's other processes make at the same time. xdist's
workers get their first tests within some 0.1 s."""

CARD, TICKET = "gpu-", "ticket-"


class LeaseError(Exception):
    """GPUs can't be leased as they were asked for, or a launch did not keep to its lease. The message says why."""


@dataclass(frozen=True)
class Request:
    """How many cards are wanted, of which: names (`card_name`) in the order in which they are preferred.

    Of the requests of one run that with the most `weight` comes first.
    """

    count: int
    allowed: tuple[str, ...]
    weight: int = 0


@dataclass(frozen=True)
class Ticket:
    """A request that waits: its number in the queue and whose run it is of."""

    number: int
    run: str
    request: Request


def in_turn(tickets: Sequence[Ticket]) -> list[Ticket]:
    """Return tickets in the order in which they are served. Pure.

    Of a run's that follow each other the heaviest comes first; nobody passes another run's request.
    """
    by_number = sorted(tickets, key=lambda ticket: ticket.number)
    return [
        ticket
        for _, mine in itertools.groupby(by_number, key=lambda ticket: ticket.run)
        for ticket in sorted(mine, key=lambda ticket: -ticket.request.weight)
    ]


def grant(request: Request, ahead: Sequence[Request], free: Collection[str]) -> tuple[str, ...] | None:
    """Return the cards that a request gets now, or None if it has to wait. Pure.

    Parameters
    ----------
    request
        What is asked for.
    ahead
        Requests that came before and still wait, the first first. Each keeps back as many of the free cards as it
        wants, whether they suffice or not.
    free
        Cards that nobody holds.
    """
    left = set(free)
    for earlier in ahead:
        left.difference_update([card for card in earlier.allowed if card in left][: max(0, earlier.count)])
    mine = [card for card in request.allowed if card in left][: request.count]
    return tuple(mine) if len(mine) == request.count else None


def prefer(cards: Sequence[str], first: Collection[str]) -> tuple[str, ...]:
    """Return the cards with those of `first` in front: what was measured on before, so that sides stay together."""
    return tuple(sorted(cards, key=lambda card: card not in first))


def card_name(gpu: Mapping[str, Any], word: str) -> str:
    """Return the name under which a card is leased: its UUID, or where torch knows none the caller's word for it."""
    uuid = bare_uuid(str(gpu.get("uuid") or ""))
    name = uuid or f"number-{word}"
    # It becomes a file's name; what is no UUID is made one that can't leave the folder.
    plain = re.fullmatch(r"[a-z0-9-]{1,100}", name)
    return name if plain else hashlib.sha256(name.encode(errors="replace")).hexdigest()


def visible_words(environ: Mapping[str, str], names: Sequence[str], count: int) -> list[str]:
    """Return the caller's words for the GPUs that the stack's torch counts 0, 1, …: UUIDs or numbers.

    `names` are the variables that may name them, the first that is set counts; without one, they are numbered.
    """
    value = next((environ[name] for name in names if environ.get(name)), "")
    words = [word.strip() for word in value.split(",") if word.strip()]
    return words[:count] if len(words) >= count else [str(number) for number in range(count)]


class Leases:
    """Leases of this node's GPUs, for one process.

    Parameters
    ----------
    run
        The run that wants them, for others to read.
    folder
        Where the locks lie; `perf.launch.lock.lock_folder` if None.
    say
        Told in one sentence who holds the cards, when waiting starts, when that changes, and once a minute.
    settle
        Seconds for which the first request waits, so that those of the run's other processes are in the queue too.
    """

    def __init__(
        self,
        run: str,
        folder: Path | None = None,
        say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
        settle: float = 0.0,
    ) -> None:
        self._run = run
        self._folder = folder or lock_folder()
        self._claims = Claims(self._folder)
        self._say = say
        self._settle = settle
        self._held: dict[str, Claim] = {}

    @contextlib.contextmanager
    def lease(
        self, request: Request, meanwhile: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, ...]]:
        """Wait for cards, as long as it takes, and hold them: all at once, so that nobody waits in a circle.

        Parameters
        ----------
        meanwhile
            Done with a place in the queue, before the first card is taken.

        Yields
        ------
        tuple of str
            The cards' names, in the request's order.

        Raises
        ------
        LeaseError
            If it asks for more cards than it allows.
        LockError
            If the locks can't be used.
        """
        if len(set(request.allowed)) < request.count:
            raise LeaseError(
                f"{request.count} GPUs are wanted and {len(set(request.allowed))} may be used: look at "
                f"CUDA_VISIBLE_DEVICES"
            )
        prepare_folder(self._folder)
        held = self._wait(request, meanwhile)
        self._held |= held
        try:
            yield tuple(held)
        finally:
            self.give_back(held)

    def give_back(self, cards: Iterable[str]) -> None:
        """Give cards of a lease back before its end; those that it does not hold any more are left."""
        for card in cards:
            claim = self._held.pop(card, None)
            if claim is not None:
                # A card's file stays: it is the same card for the next one.
                claim.drop(remove=False)

    def _wait(self, request: Request, meanwhile: Callable[[], None]) -> dict[str, Claim]:
        ticket = self._queue(request)
        told: tuple[str, float] | None = None
        try:
            meanwhile()
            time.sleep(self._settle)
            self._settle = 0.0
            while True:
                held, holders = self._look(request, ticket)
                if held is not None:
                    return held
                now = time.monotonic()
                if told is None or told[0] != holders or now - told[1] >= REPEAT_SECONDS:
                    self._say(
                        f"waiting for {request.count} of {len(request.allowed)} GPUs: {harmless(holders)}"
                    )
                    told = (holders, now)
                time.sleep(LOOK_SECONDS)
        finally:
            # Not under the guard, which may be what failed: whoever finds it in between drops it just so.
            ticket.drop(remove=True)

    def _queue(self, request: Request) -> Claim:
        wanted = {"count": request.count, "allowed": list(request.allowed), "weight": request.weight}
        note = {**holder_note(self._run), **wanted}
        with self._claims.guard():
            numbers = [_number(name) for name in self._claims.living(TICKET)]
            return self._claims.take_new(f"{TICKET}{max(numbers, default=0) + 1:09d}-", note)

    def _look(self, request: Request, ticket: Claim) -> tuple[dict[str, Claim] | None, str]:
        """Take what the request gets, if it gets it now; else say who is in the way."""
        with self._claims.guard():
            waiting = self._claims.living(TICKET, mine=ticket)
            mine = Ticket(_number(ticket.path.name), self._run, request)
            others = {
                found: note
                for name, note in waiting.items()
                if (found := parse_ticket(_number(name), note)) is not None
            }
            order = in_turn([mine, *others])
            before = order[: order.index(mine)]
            ahead = [other.request for other in before]
            note = holder_note(self._run)
            free: dict[str, Claim] = {}
            try:
                for card in dict.fromkeys(request.allowed):
                    claim = self._claims.take(_file(card), note)
                    if claim is not None:
                        free[card] = claim
                granted = grant(request, ahead, free)
            except BaseException:
                granted = ()
                raise
            finally:
                for card, claim in free.items():
                    if not granted or card not in granted:
                        claim.drop(remove=False)
            if granted is not None:
                return {card: free[card] for card in granted}, ""
            notes = [
                *(self._claims.read(_file(card)) for card in request.allowed if card not in free),
                *(others[other] for other in before),
            ]
        people = dict.fromkeys(str(parse_holder(found) or NO_NAME) for found in notes)
        return None, "; ".join(people)


def parse_ticket(number: int, note: Any) -> Ticket | None:
    """Read what a ticket says; None for what is none, which then keeps nothing back: anybody can write there."""
    try:
        count, allowed = note["count"], note["allowed"]
    except (KeyError, TypeError):
        return None
    if type(count) is not int or count < 0 or not isinstance(allowed, list):
        return None
    weight, run = note.get("weight"), note.get("run")
    cards = tuple(card for card in allowed if isinstance(card, str))
    return Ticket(number, str(run), Request(count, cards, weight if type(weight) is int else 0))


def _file(card: str) -> str:
    return f"{CARD}{card}.lock"


def _number(name: str) -> int:
    return whole(name.removeprefix(TICKET).partition("-")[0]) or 0


__all__ = ["LeaseError", "Leases", "LockError", "Request", "card_name", "grant", "prefer", "visible_words"]
