"""Writing an occasion into the text of a reference file: comments, order and what is not touched stay. Pure."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.items import AoT, Table

from perf.calibration.occasions import New
from perf.verdict.metrics import METRICS
from perf.verdict.references import SCHEMA, ReferenceFile
from perf.verdict.spread import SPREADS_IN_A_MARGIN
from perf.verdict.system import System

__all__ = ["MarginTooSmall", "default_margin", "new_file", "with_occasions"]

DIGITS = 6
"""Significant digits of a written number: far below the spread of any launch, and short enough to be read."""

MARGIN_STEP = 0.005
"""A margin is rounded up to half a percent: more digits would claim that the spread is known better than it is."""

LEAST_MARGIN = 0.02
"""What a comparison asks for unless the spread forbids it: smaller changes cost more launches than they are worth."""

HEADER = """\
# What this system is known to do. Written by `nox -s calibrate`; edit what you like, comments stay.
# docs/references.md says what each key means.
"""


class MarginTooSmall(ValueError):
    """A margin that equal stacks could not pass. The message says for which variants, and what they need."""


def default_margin(sd: float) -> float:
    """Return the smallest margin that is offered for a spread: three spreads, rounded up, and at least 2 %."""
    steps = math.ceil(SPREADS_IN_A_MARGIN * sd / MARGIN_STEP - 1e-9)
    return max(LEAST_MARGIN, round(steps * MARGIN_STEP, 6))


def new_file(system: System, *, single_node: bool) -> str:
    """Return the text of a file that holds a system and no reference yet."""
    document = tomlkit.document()
    document["schema"] = SCHEMA
    table = tomlkit.table()
    table["gpu"] = system.gpu
    table["gpus"] = system.gpus
    if system.power_limit_watts is not None:
        table["power_limit_watts"] = _short(system.power_limit_watts)
    if system.cpu is not None:
        table["cpu"] = system.cpu
    if single_node:
        table["single_node"] = True
    document["system"] = table
    return HEADER + tomlkit.dumps(document)


def with_occasions(
    text: str,
    known: ReferenceFile,
    added: Sequence[New],
    *,
    expires: datetime.date,
    margin: float | None = None,
) -> str:
    """Return the text of a reference file with new occasions in it.

    An occasion of the same date and node takes the place of the old one. If the configuration has changed, the old
    occasions are of something else and go; so does a tolerance, whose reason was another measurement's. An expected
    failure stays.

    Parameters
    ----------
    text, known
        The file's text, and what it was read as.
    added
        What is written.
    expires
        From when on the touched references no longer hold.
    margin
        The smallest change that two stacks may be compared for, the same for all; None takes what each one's spread
        allows.

    Raises
    ------
    MarginTooSmall
        If `margin` is below three spreads of a variant.
    """
    small = [one for one in added if margin is not None and margin < one.spread.least_margin]
    if margin is not None and small:
        listed = "; ".join(
            f"{one.variant} spreads by {100 * one.spread.sd:.2g} % and needs {100 * default_margin(one.spread.sd):g} %"
            for one in small
        )
        raise MarginTooSmall(f"a margin of {100 * margin:g} % is below three times the spread: {listed}")
    document = tomlkit.parse(text)
    references = _child(document, "reference", is_super=True)
    for one in added:
        metrics = _child(references, one.variant, is_super=True)
        old = known.references.get((one.variant, one.metric))
        if old is not None and old.fingerprint != one.fingerprint:
            # Numbers of another configuration: nothing of them holds.
            metrics.remove(one.metric)
            old = None
        if old is None:
            metrics[one.metric] = _reference(one)
        table = metrics[one.metric]
        assert isinstance(table, Table)
        table["expires"] = expires
        table["spread"] = _short(one.spread.sd)
        table["margin"] = margin if margin is not None else default_margin(one.spread.sd)
        _put_occasion(table, one)
    return tomlkit.dumps(document)


def _reference(one: New) -> Table:
    table = tomlkit.table()
    table["unit"] = METRICS[one.metric].unit
    table["direction"] = METRICS[one.metric].direction
    table["expires"] = ""  # here, so that it stands above the numbers
    table["fingerprint"] = one.fingerprint
    inline = tomlkit.inline_table()
    inline.update(one.configuration)
    table["configuration"] = inline
    table["spread"] = 0.0
    table["margin"] = 0.0
    return table


def _put_occasion(table: Table, one: New) -> None:
    found: Any = table.get("occasion")
    occasions: AoT = found if isinstance(found, AoT) else tomlkit.aot()
    date = datetime.date.fromisoformat(one.recorded.date)
    for index, occasion in enumerate(occasions):
        if occasion["date"] == date and occasion["node"] == one.recorded.node:
            del occasions[index]
            break
    new = tomlkit.table()
    new["date"] = date
    new["node"] = one.recorded.node
    new["stack"] = one.recorded.stack
    new["run"] = one.recorded.run
    if one.recorded.jobs:
        new["jobs"] = list(one.recorded.jobs)
    new["recorded_by"] = one.recorded.recorded_by
    new["launches"] = [_short(value) for value in one.recorded.values]
    occasions.append(new)
    if not isinstance(found, AoT):
        table["occasion"] = occasions


def _child(parent: Any, name: str, *, is_super: bool) -> Any:
    """Return a table within another one, made if need be; a super table has no header of its own."""
    if name not in parent:
        parent[name] = tomlkit.table(is_super_table=is_super)
    return parent[name]


def _short(value: float) -> float | int:
    """Return a number with `DIGITS` significant digits; a whole one without a decimal point."""
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded
