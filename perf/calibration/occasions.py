"""From the launches of a run to what a reference file holds of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perf.catalogue import home
from perf.contract import LaunchRecord
from perf.faults.plant import planted
from perf.suite.floors import date_of, node_of, variant_of
from perf.verdict.configuration import configuration, fingerprint
from perf.verdict.floors import LAUNCHES_PER_OCCASION
from perf.verdict.metrics import METRICS
from perf.verdict.references import Recorded
from perf.verdict.spread import Spread, spread_of

__all__ = ["LeftOut", "New", "new_occasions"]

JOB_VARIABLES = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID")
_STACK_FACTS = (("torch", "torch"), ("CUDA", "cuda"), ("HIP", "hip"), ("cuDNN", "cudnn"), ("NCCL", "nccl"))


@dataclass(frozen=True)
class New:
    """One occasion of one metric of one variant, ready to be written.

    Attributes
    ----------
    steps
        What two stacks would be compared by, one number a launch in the order of the launches.
    spread
        Their launch-to-launch spread.
    """

    variant: str
    metric: str
    configuration: dict[str, Any]
    recorded: Recorded
    steps: tuple[float, ...]
    spread: Spread

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the configuration."""
        return fingerprint(self.configuration)


@dataclass(frozen=True)
class LeftOut:
    """A variant that can't become a reference, and why."""

    variant: str
    why: str


def new_occasions(
    launches: Sequence[LaunchRecord], environment: Mapping[str, Any]
) -> tuple[list[New], list[LeftOut]]:
    """Return what one run adds to the references of its system.

    What trains on its real loader is taken, in its home group, as the tests of floors take it, and what measures the
    machine. Launches that were added for a test, and those that ran with a profiler, are left out, and so is a variant
    of which a launch was invalid: a reference is made of launches that nothing speaks against.

    Parameters
    ----------
    launches
        The run's launches, in the order in which they ended.
    environment
        What the run's ``environment.json`` says.
    """
    taken: dict[tuple[str, str], list[LaunchRecord]] = {}
    for launch in launches:
        if launch.escalation or launch.profiled:
            continue
        if _is_at_home(launch) and launch.mode == "full" and launch.plan in ("window", "rates"):
            taken.setdefault((variant_of(launch), node_of(launch)), []).append(launch)
    found: list[New] = []
    left: list[LeftOut] = []
    for (variant, _), mine in taken.items():
        why = _unfit(mine)
        if why:
            left.append(LeftOut(variant, why))
            continue
        for metric in METRICS.values():
            values = metric.values(mine)
            # A quantity that some launches lack (memory on a CPU) is no quantity of this variant.
            if len(values) == len(mine):
                found.append(_new(variant, metric.name, mine, values, environment))
    return found, left


def _new(
    variant: str,
    metric: str,
    launches: Sequence[LaunchRecord],
    values: Sequence[float],
    environment: Mapping[str, Any],
) -> New:
    first = launches[0]
    steps = METRICS[metric].compared_values(launches)
    variables = environment.get("variables")
    known: Mapping[str, Any] = variables if isinstance(variables, Mapping) else {}
    return New(
        variant=variant,
        metric=metric,
        configuration=configuration(first),
        recorded=Recorded(
            date=date_of(first),
            node=node_of(first),
            stack=stack_words(first.stack),
            run=first.run,
            jobs=tuple(str(known[name]) for name in JOB_VARIABLES if known.get(name)),
            recorded_by=str(environment.get("user") or "unknown"),
            values=tuple(values),
        ),
        steps=tuple(steps),
        spread=spread_of(steps),
    )


def stack_words(stack: Mapping[str, Any]) -> str:
    """Return a stack in a few words: 'torch 2.14.1+cu130, CUDA 13.0, cuDNN 91900, NCCL 2.28.9'."""
    return ", ".join(f"{word} {stack[fact]}" for word, fact in _STACK_FACTS if stack.get(fact)) or "unknown"


def _is_at_home(launch: LaunchRecord) -> bool:
    try:
        return home(variant_of(launch)).group == launch.group
    except LookupError:
        return False


def _unfit(launches: Sequence[LaunchRecord]) -> str | None:
    """Return why a variant's launches can't become an occasion; None if they can."""
    if len(launches) < LAUNCHES_PER_OCCASION:
        return f"has {len(launches)} launches, an occasion needs {LAUNCHES_PER_OCCASION}"
    fault = next((found for launch in launches if (found := planted(launch)) is not None), None)
    if fault is not None:
        return f"was measured with the fault {fault!r} planted in it"
    bad = [launch for launch in launches if not launch.valid]
    if bad:
        return (
            f"launch {bad[0].launch} is invalid: {bad[0].reasons[0] if bad[0].reasons else 'no reason given'}"
        )
    if any("oversubscribed" in launch.flags for launch in launches):
        return "is oversubscribed: it asks for more threads and workers than there are cores"
    if len({fingerprint(configuration(launch)) for launch in launches}) > 1:
        return "was measured in several configurations"
    if len({stack_words(launch.stack) for launch in launches}) > 1:
        return "was measured with several stacks"
    return None
