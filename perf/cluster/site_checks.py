"""What the types of a site file can't say: ranges, forms, and words that name one another. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from perf.cluster.site_errors import Place, nearest
from perf.cluster.templates import TemplateError, check_template
from perf.limits import LIMITS
from perf.tomlfile import Path as Key

PLACES = ("repository", "results", "data", "cache")
"""What a stack's wrapper and step options may name in braces, so that a container can mount it."""

AMOUNTS = ("nodes", "gpus", "cores", "slots")
"""What `nodes` and `gpus` of a scheduler may name."""

MOST = 1e9
"""No number of a site file is larger: in seconds it is 30 years. More would end as an error where it is used."""

TIME = re.compile(r"[0-9]{1,4}:[0-5][0-9]:[0-5][0-9]", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,63}", re.ASCII)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def check_tables(place: Place, tables: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> None:
    """Check what types can't say.

    Parameters
    ----------
    place
        Makes the errors.
    tables
        The tables ``scheduler``, ``node`` and ``data``.
    named
        ``stacks`` and ``limits``, by name.

    Raises
    ------
    SiteError
        For the first thing that is wrong.
    """
    _scheduler(place, tables["scheduler"])
    _node(place, tables["node"], tables["scheduler"].kind)
    for key in ("root", "cache"):
        value = getattr(tables["data"], key)
        if value and not value.startswith("/"):
            raise place.error(("data", key), "expected an absolute path, since jobs run elsewhere")
        _one_line(place, ("data", key), [value])
    # What is not set can't be mounted: an empty name in a list of mounts would be refused by the container, much later.
    places = tuple(name for name in PLACES if name != "data" or tables["data"].root)
    for name, stack in named["stacks"].items():
        _stack(place, name, stack, places)
    for metric, override in named["limits"].items():
        _limit(place, metric, override)


def _scheduler(place: Place, scheduler: Any) -> None:
    if not TIME.fullmatch(scheduler.time) or scheduler.time_seconds < 60:
        what = f"expected HH:MM:SS of a minute or more, found {scheduler.time!r:.40}"
        raise place.error(("scheduler", "time"), what)
    for key, least in (
        ("jobs", 0),
        ("pending_hours", 0.01),
        ("poll_seconds", 1.0),
        ("accounting_seconds", 0.0),
    ):
        _at_least(place, ("scheduler", key), getattr(scheduler, key), least)
    for key in ("nodes", "gpus"):
        _templates(place, ("scheduler", key), getattr(scheduler, key) or [], AMOUNTS)
    for key in ("partition", "account", "qos"):
        _one_line(place, ("scheduler", key), [getattr(scheduler, key)])
    for key in ("options", "step_options", "keep"):
        _one_line(place, ("scheduler", key), getattr(scheduler, key))


def _node(place: Place, node: Any, kind: str) -> None:
    for key, least in (("gpus", 0), ("cores", 1), ("most", 1)):
        _at_least(place, ("node", key), getattr(node, key), least)
    if node.cores_per_gpu is not None:
        _at_least(place, ("node", "cores_per_gpu"), node.cores_per_gpu, 1)
    if kind == "local" and node.most != 1:
        raise place.error(("node", "most"), "a machine without a scheduler is one node")
    _variables(place, ("node", "environment"), node.environment)


def _stack(place: Place, name: str, stack: Any, places: tuple[str, ...]) -> None:
    key: Key = ("stacks", name)
    if not NAME.fullmatch(name):
        raise place.error(key, "a stack's name is letters, digits and _.+- (it becomes part of file names)")
    if not stack.python:
        raise place.error((*key, "python"), "is empty: name the Python that imports torch")
    _one_line(place, (*key, "python"), [stack.python])
    _one_line(place, (*key, "torch"), [stack.torch])
    _variables(place, (*key, "environment"), stack.environment)
    for part in ("wrapper", "step_options"):
        _templates(place, (*key, part), getattr(stack, part), places)
    # Lines of a shell: a line feed or a tab means something there.
    for line in stack.setup:
        _no_zero(place, (*key, "setup"), line)


def _limit(place: Place, metric: str, override: Any) -> None:
    metrics = sorted({limit.metric for limit in LIMITS})
    if metric not in metrics:
        known = f"there are {', '.join(metrics)}"
        raise place.error(("limits", metric), f"no limit of that name{nearest(metric, metrics)}; {known}")
    if not override.reason.strip():
        raise place.error(("limits", metric, "reason"), "is empty: say why this site needs another limit")
    _no_zero(place, ("limits", metric, "reason"), override.reason)
    share = any(limit.unit == "share" for limit in LIMITS if limit.metric == metric)
    # Ratios are compared as logarithms, and so are shares, 1 less a ratio. Written so that NaN is refused too.
    if not 0.0 < override.value < (1.0 if share else MOST):
        what = "a share above 0 and below 1" if share else f"a number above 0 and below {MOST:g}"
        raise place.error(("limits", metric, "value"), f"expected {what}, found {override.value:g}")


def _at_least(place: Place, key: Key, value: float, least: float) -> None:
    # Written so that NaN is refused too.
    if not least <= value <= MOST:
        what = (
            f"expected {least:g} or more"
            if value < least
            else f"expected a number from {least:g} to {MOST:g}"
        )
        raise place.error(key, f"{what}, found {value:g}")


def _one_line(place: Place, key: Key, words: Iterable[str]) -> None:
    for word in words:
        if any(ord(c) < 32 or ord(c) == 127 for c in word):
            raise place.error(key, f"a control character in {word!r:.60}")


def _templates(place: Place, key: Key, words: Iterable[str], names: tuple[str, ...]) -> None:
    for word in words:
        try:
            check_template(word, names)
        except TemplateError as error:
            raise place.error(key, str(error)) from error
    _one_line(place, key, words)


def _variables(place: Place, key: Key, environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not VARIABLE.fullmatch(name):
            raise place.error((*key, name), "is no name of a variable")
        _no_zero(place, (*key, name), value)


def _no_zero(place: Place, key: Key, text: str) -> None:
    if "\0" in text:
        raise place.error(key, "holds a zero character")
