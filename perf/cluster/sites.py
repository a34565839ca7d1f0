"""Site files: how one centre's cluster is used. Read from TOML, checked, with errors that name file, line and key."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Literal

import msgspec

from perf.cluster.site_checks import check_tables
from perf.cluster.site_errors import Place, SiteError, nearest
from perf.launch.text import harmless
from perf.limits import Override
from perf.tomlfile import TomlError
from perf.tomltext import parse

NODES_ASKED = {
    "slurm": ["--nodes={nodes}"],
    "lsf": ["-n", "{slots}", "-R", "span[ptile={cores}]"],
    "local": [],
}
"""How a number of nodes is asked for, unless the site says otherwise. LSF counts slots, so many on each host."""

GPUS_ASKED = {"slurm": ["--gpus-per-node={gpus}"], "lsf": ["-gpu", "num={gpus}:j_exclusive=yes"], "local": []}
"""How GPUs are asked for. Per node, never per task: NCCL needs every rank to see all GPUs of its node."""

STEPS = {"slurm": "srun", "lsf": "blaunch", "local": "none"}


class Scheduler(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[scheduler]``: how jobs are submitted.

    Parameters
    ----------
    kind
        Which scheduler.
    partition, account, qos
        As its options of these names say; for LSF queue, project and service class. Empty: not given.
    time
        The longest that one job may ask for, ``HH:MM:SS``. Each job asks for what its plan needs.
    exclusive
        Whether a job gets its nodes for itself. Without it neighbours are measured too.
    nodes, gpus
        How they are asked for: words with ``{nodes}``, ``{gpus}``, ``{cores}`` and ``{slots}``; None for the
        scheduler's usual ones.
    options, step_options
        Further words for the submitting command, and for the one that starts a step inside a job.
    steps
        The command that starts steps: ``srun``, ``jsrun``, ``blaunch`` or ``none``; None for the scheduler's usual.
    keep
        Variables that jobs inherit though they look like a scheduler's; ``*`` at the end stands for anything.
    jobs
        Jobs that may be submitted at once; 0 for all.
    pending_hours
        A job that has waited longer is given up.
    poll_seconds
        Between two queries.
    accounting_seconds
        How long to wait for the scheduler's account of a job that has left the queue.
    """

    kind: Literal["slurm", "lsf", "local"]
    partition: str = ""
    account: str = ""
    qos: str = ""
    time: str = "02:00:00"
    exclusive: bool = True
    nodes: list[str] | None = None
    gpus: list[str] | None = None
    options: list[str] = []
    steps: Literal["srun", "jsrun", "blaunch", "none"] | None = None
    step_options: list[str] = []
    keep: list[str] = []
    jobs: int = 0
    pending_hours: float = 24.0
    poll_seconds: float = 15.0
    accounting_seconds: float = 90.0

    @property
    def time_seconds(self) -> int:
        """`time` in seconds."""
        hours, minutes, seconds = (int(part) for part in self.time.split(":"))
        return hours * 3600 + minutes * 60 + seconds

    @property
    def nodes_asked(self) -> list[str]:
        """The words that ask for nodes."""
        return NODES_ASKED[self.kind] if self.nodes is None else self.nodes

    @property
    def gpus_asked(self) -> list[str]:
        """The words that ask for GPUs."""
        return GPUS_ASKED[self.kind] if self.gpus is None else self.gpus

    @property
    def step_command(self) -> str:
        """The command that starts steps."""
        return self.steps or STEPS[self.kind]


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[node]``: what one node has. `most` is the largest number of nodes that one job may have.

    `cores` are those of the whole node; `cores_per_gpu` is what comes with a GPU where a job takes a part of it.
    `numa` says whether each rank is bound to the cores beside its GPU. `environment` holds for every launch, as NCCL's
    and gloo's interface names do.
    """

    gpus: int = 0
    cores: int
    cores_per_gpu: int | None = None
    most: int = 1
    numa: bool = True
    environment: dict[str, str] = {}


class StackTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[stacks.NAME]``: a stack under test.

    Parameters
    ----------
    python
        The Python that imports torch, as the setup lines and the wrapper leave it.
    setup
        Shell commands, each a whole one, that run in a fresh shell before each launch, for the worker only.
    wrapper
        Words before `python`, such as ``apptainer exec --nv IMAGE``.
    step_options
        Words for the command that starts the step, such as ``--container-image=IMAGE``.
    environment
        Variables of the worker.
    torch
        The version that must be found, such as ``2.9.1``; empty for any.
    """

    python: str = "python3"
    setup: list[str] = []
    wrapper: list[str] = []
    step_options: list[str] = []
    environment: dict[str, str] = {}
    torch: str = ""


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[data]``: `root` holds staged data, `cache` generated data. Every node must see them at these paths."""

    root: str = ""
    cache: str = ""


class LimitTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[limits.METRIC]``: a limit of this site's own and why."""

    value: float
    reason: str


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A site file that has been checked. `name` is the file's, without its ending."""

    name: str
    path: str
    scheduler: Scheduler
    node: Node
    stacks: dict[str, StackTable] = {}
    data: Data = Data()
    limits: dict[str, Override] = {}

    def stack(self, name: str) -> StackTable:
        """Return a stack by name.

        Raises
        ------
        SiteError
            If there is none of that name; the message lists those that there are.
        """
        if name not in self.stacks:
            known = ", ".join(self.stacks) or "none"
            raise SiteError(
                f"{self.path}: no stack {harmless(name)!r}{nearest(name, self.stacks)}; it has {known}. "
                f"Add a table [stacks.{harmless(name)}]"
            )
        return self.stacks[name]


__all__ = ["Data", "Node", "Scheduler", "Site", "SiteError", "StackTable", "load_site", "parse_site"]

TABLES: dict[str, Any] = {"scheduler": Scheduler, "node": Node, "data": Data}
NAMED_TABLES: dict[str, Any] = {"stacks": StackTable, "limits": LimitTable}
NEEDED = ("scheduler", "node")


def load_site(path: str | Path) -> Site:
    """Read a site file.

    Raises
    ------
    SiteError
        If it can't be read, is no TOML, or holds something unknown or impossible.
    """
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            # Reading a pipe or a terminal would wait, perhaps for ever; and jobs read the file again.
            raise SiteError(
                f"--site {harmless(str(path))} is a pipe, a device or a socket; name a regular file"
            )
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SiteError(
            f"--site {harmless(str(path))} can't be read: {why}. docs/sites/ holds examples to start from"
        ) from error
    return parse_site(text, str(Path(path).absolute()))


def parse_site(text: str, path: str) -> Site:
    """Check the text of a site file; `path` is for messages and for the site's name. Pure.

    Raises
    ------
    SiteError
        As `load_site`.
    """
    try:
        data, lines = parse(text, path)
    except TomlError as error:
        raise SiteError(harmless(str(error))) from error
    place = Place(path, lines)
    known = [*TABLES, *NAMED_TABLES]
    for key, value in data.items():
        if key not in known:
            raise place.error(
                (key,), f"unknown table{nearest(key, known)}; a site file has {', '.join(known)}"
            )
        if not isinstance(value, dict):
            raise place.error((key,), f"expected a table [{key}], found {value!r:.60}")
    for key in NEEDED:
        if key not in data:
            raise place.error((), f"the table [{key}] is missing")
    tables = {key: place.convert(kind, data.get(key, {}), (key,)) for key, kind in TABLES.items()}
    named: dict[str, dict[str, Any]] = {}
    for table, kind in NAMED_TABLES.items():
        named[table] = {}
        for name, value in data.get(table, {}).items():
            if not isinstance(value, dict):
                raise place.error((table, name), f"expected a table [{table}.{name}], found {value!r:.60}")
            named[table][name] = place.convert(kind, value, (table, name))
    check_tables(place, tables, named)
    return Site(
        name=Path(path).stem,
        path=path,
        scheduler=tables["scheduler"],
        node=tables["node"],
        stacks=named["stacks"],
        data=tables["data"],
        limits={metric: Override(t.value, t.reason) for metric, t in named["limits"].items()},
    )
