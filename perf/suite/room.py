"""A group's place on the node while it is measured: its GPUs by lease, its cores, and the node alone or shared."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perf import contract
from perf.catalogue import GROUPS, Group, Member
from perf.launch.cores import bound, in_order, parts
from perf.launch.leases import SETTLE_SECONDS, LeaseError, Leases, Request, card_name, prefer, visible_words
from perf.launch.lock import NodeLock
from perf.launch.sharing import shared_node
from perf.launch.stack import Stack
from perf.launch.telemetry.node import VISIBLE
from perf.launch.telemetry.reading import bare_uuid
from perf.launch.validity import CROWDED


@dataclass(frozen=True)
class Node:
    """What of a node there is to share.

    Parameters
    ----------
    stack
        What its torch says of the GPUs that the caller lets it see.
    cores
        Cores that this process may keep busy.
    core_ids
        Their numbers, neighbours beside each other.
    environ
        The caller's environment.
    """

    stack: Stack
    cores: int
    core_ids: Sequence[int]
    environ: Mapping[str, str]

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that say which GPUs a process sees, the first that is set counts.

        ROCR's comes last: it numbers the GPUs for the others, which choose among what it leaves.
        """
        names = VISIBLE["amdsmi" if self.stack.facts.get("hip") else "nvml"]
        return tuple(sorted(names, key=lambda name: name.startswith("ROCR")))

    @property
    def words(self) -> list[str]:
        """The caller's words for the GPUs that torch counts 0, 1, …."""
        return visible_words(self.environ, self.variables, len(self.stack.facts["gpus"]))

    @property
    def cards(self) -> list[str]:
        """Names of the GPUs, as they are leased."""
        return [card_name(gpu, word) for gpu, word in zip(self.stack.facts["gpus"], self.words, strict=True)]


def is_functional(group: Group, profile: str) -> bool:
    """Whether no verdict rests on a group's times: samples are counted, or ``smoke`` looks at facts alone. Pure."""
    if all(member.plan == "audit" for member in group.members):
        return True
    return profile == "smoke" and not (group.judged and group.smoke_judged)


class Rooms:
    """Gives each group its place, one after the other, in one process.

    Parameters
    ----------
    run
        The run, for others to read.
    node
        What there is.
    share
        Whether launches share the node with others without waiting for anybody (``--share-node``).
    beside
        Whether other processes of this run measure meanwhile (xdist), so that functional groups share the node.
    profile
        Name of the run's profile.
    steps
        Whether launches are steps of a job: the scheduler then says which GPUs and cores they have, and nothing is
        leased.
    say
        Told who is waited for.
    weigh
        Says how much a group has to do: of a run's groups that wait for GPUs the heaviest is served first.
    folder
        Where the locks lie; the node's own if None.
    """

    def __init__(
        self,
        run: str,
        node: Node,
        *,
        share: bool,
        beside: bool,
        profile: str,
        steps: bool,
        say: Callable[[str], None],
        weigh: Callable[[str], int] = lambda group: 0,
        folder: Path | None = None,
    ) -> None:
        self._run = run
        self._weigh = weigh
        self._node = node
        self._share = share
        self._beside = beside
        self._profile = profile
        self._steps = steps
        self._say = say
        self._folder = folder
        self._leases = Leases(run, folder, say, settle=SETTLE_SECONDS if beside else 0.0)
        self._lock = NodeLock(run, folder, say)
        self._leased: tuple[int, ...] | None = None
        """Places of the GPUs that the present group has, as torch counts them; None where nothing is leased."""
        self._before: tuple[str, ...] = ()
        self._held: tuple[str, tuple[str, ...]] | None = None
        """Name of the group that had room last, and its cards."""
        self._keeping = contextlib.ExitStack()
        self._shared = share

    @contextlib.contextmanager
    def room(self, members: Sequence[Member], meanwhile: Callable[[], None] = lambda: None) -> Iterator[int]:
        """Lease what the largest of some members of a group needs, and yield the cores that a launch may keep busy.

        A group that shares the node has the cores that go with its largest member's GPUs; one that has the node to
        itself has all.

        Parameters
        ----------
        meanwhile
            What takes no GPU, and is done before any is taken.

        Raises
        ------
        LeaseError
            If there are fewer GPUs than it needs.
        LockError
            If the locks can't be used.
        """
        gpus = max((member.variant.gpus for member in members), default=0)
        self._shared = self._share
        if gpus == 0 or self._steps:
            self.close()
            meanwhile()
            yield self._node.cores
            return
        held = self._lease(members[0].group, gpus, meanwhile)
        self._leased = tuple(sorted(self._node.cards.index(card) for card in held))
        self._shared = self._share or (
            self._beside and all(is_functional(GROUPS[m.group], self._profile) for m in members)
        )
        try:
            yield self._fed(members[0].group) if self._shared else self._node.cores
        finally:
            self._leased = None
            self._shared = self._share

    def _fed(self, group: str) -> int:
        """Return the cores that feed a group's launches: those that go with its largest member's GPUs.

        With GPUs that it has given back a launch that follows would be fed by fewer than the first one was.
        """
        counts = [member.variant.gpus for member in GROUPS[group].members]
        most = max([count for count in counts if count <= len(self._node.cards)], default=1)
        leased = self._leased or ()
        others = [place for place in range(len(self._node.cards)) if place not in leased]
        return len(self._cores_of([*leased, *others][: max(most, len(leased))]))

    def _lease(self, group: str, gpus: int, meanwhile: Callable[[], None]) -> tuple[str, ...]:
        """Return the cards that a group has: those that it had for its last launches, or others when they come free."""
        if self._held is None or self._held[0] != group or len(self._held[1]) < gpus:
            # First given back, then asked for: whoever holds some and waits for more may wait in a circle.
            self.close()
            request = Request(gpus, prefer(self._node.cards, self._before), self._weigh(group))
            self._before = self._keeping.enter_context(self._leases.lease(request, meanwhile))
            self._held = (group, self._before)
        return self._held[1]

    def keep(self, gpus: int) -> None:
        """Give back all of the present group's GPUs but so many: no launch that is still to come needs more."""
        if self._held is None or self._leased is None or len(self._held[1]) <= gpus:
            return
        group, cards = self._held
        self._leases.give_back(cards[gpus:])
        self._held = (group, cards[:gpus])
        self._leased = tuple(sorted(self._node.cards.index(card) for card in cards[:gpus]))

    def close(self) -> None:
        """Give back the GPUs of the last group, which it keeps until another one is measured.

        Its tests are judged meanwhile, and ask for more launches; at the end of the queue it would wait for each.
        """
        self._held = None
        self._keeping.close()

    @property
    def core_ids(self) -> Sequence[int]:
        """Numbers of all cores that the groups' are a part of."""
        return self._node.core_ids

    @property
    def shared(self) -> bool:
        """Whether others may run on this node beside the present group's launches."""
        return self._shared

    @property
    def lock(self) -> NodeLock | None:
        """The node's lock, for a launch that has the node to itself."""
        return None if self._shared else self._lock

    @contextlib.contextmanager
    def launching(self) -> Iterator[None]:
        """Have the node, alone or shared, for one launch."""
        with contextlib.ExitStack() as stack:
            if not self._shared:
                stack.enter_context(self._lock)
            elif self._leased is not None:
                stack.enter_context(shared_node(self._run, self._say, self._folder, wait=not self._share))
            yield

    @contextlib.contextmanager
    def binding(self) -> Iterator[None]:
        """Bind what is started meanwhile to the group's cores, where it has cores of its own."""
        with bound(self._cores if self._shared and self._leased is not None else None):
            yield

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return an environment in which the stack sees the group's GPUs alone."""
        if self._leased is None:
            return dict(environ)
        words = self._node.words
        value = ",".join(words[place] for place in self._leased)
        names = self._node.variables
        asked = [name for name in names if environ.get(name)] or list(names[:1])
        inner = [name for name in asked if not name.startswith("ROCR")]
        return {**environ, **dict.fromkeys(inner or asked, value)}

    def narrow(self, stack: Stack) -> Stack:
        """Return a stack whose GPUs are the group's alone."""
        if self._leased is None:
            return stack
        gpus = stack.facts["gpus"]
        return dataclasses.replace(
            stack,
            facts={**stack.facts, "gpus": [gpus[place] for place in self._leased if place < len(gpus)]},
        )

    def settle(self, record: contract.LaunchRecord) -> contract.LaunchRecord:
        """Return a record that says whether the node was shared.

        Raises
        ------
        LeaseError
            If the launch ran on a GPU that it had no lease of.
        """
        if self._leased is not None:
            gpus = [self._node.stack.facts["gpus"][place].get("uuid") for place in self._leased]
            leased = {bare_uuid(uuid) for uuid in gpus if uuid}
            used = {bare_uuid(uuid) for rank in record.gpu_uuids for uuid in rank if uuid}
            if leased and not used <= leased:
                raise LeaseError(
                    f"launch {record.launch} of {record.variant} ran on GPU {min(used - leased)}, and its lease is of "
                    f"{', '.join(sorted(leased))}: something in the stack sets {self._node.variables[0]} again. Look "
                    f"at its modules, setup lines and wrapper"
                )
        # Who shares the node by choice is told once that it does, and not in each launch that it felt it.
        flags = [flag for flag in record.flags if flag != CROWDED or not self._shared]
        return dataclasses.replace(record, shared_node=self._shared, flags=flags)

    @property
    def _cores(self) -> list[int]:
        """Numbers of the cores that go with the group's GPUs."""
        return self._cores_of(self._leased or ())

    def _cores_of(self, places: Sequence[int]) -> list[int]:
        node = self._node
        divided = parts(node.core_ids, len(node.stack.facts["gpus"]), node.cores)
        return sorted({core for place in places for core in divided[place]})


def this_node(stack: Stack, cores: int) -> Node:
    """Return what this process may use of the node it is on. Reads /sys and the environment."""
    return Node(stack, cores, in_order(os.sched_getaffinity(0)), os.environ)
