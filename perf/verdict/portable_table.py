"""Fractions of known systems, as people read and edit them (``perf/references/portable/known.toml``). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perf.tomlfile import Section, load, nearest
from perf.verdict.portable import BOUNDS, Known

__all__ = ["PortableTable", "parse"]

SCHEMA = 1


@dataclass(frozen=True)
class KnownSystem:
    """One system: its name, the date and the place of the measurement, and `fractions` by variant and bound."""

    name: str
    date: str
    source: str
    fractions: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class PortableTable:
    """All known systems, and the part of the smallest known fraction that still passes, with its reason."""

    tolerance: float
    reason: str
    systems: tuple[KnownSystem, ...]

    def known(self, variant: str) -> list[Known]:
        """Return what a variant reached on each system that has it."""
        return [Known(s.name, s.fractions[variant]) for s in self.systems if variant in s.fractions]


def parse(text: str, where: str, complaint: Callable[[str], str | None]) -> PortableTable:
    """Read the table of known systems.

    Parameters
    ----------
    text, where
        The file's text, and its name for messages.
    complaint
        Says what is wrong with the name of a variant; None if nothing is.

    Raises
    ------
    perf.tomlfile.TomlError
        With file, line and key: a key that is unknown, missing or written twice; a value that can't be; two systems
        of one name.
    """
    file = load(text, where)
    schema = file.whole("schema", least=1)
    if schema > SCHEMA:
        raise file.error("schema", f"this suite reads up to {SCHEMA}, the file has {schema}; use a newer one")
    tolerance = file.number("tolerance", above=0.0)
    if tolerance > 1.0:
        raise file.error("tolerance", f"expected a part above 0 and at most 1, got {tolerance:g}")
    reason = " ".join(file.text("reason").split())
    systems: dict[str, KnownSystem] = {}
    for section in file.tables("system"):
        system = _system(section, complaint)
        if system.name in systems:
            raise section.error("name", f"{system.name!r} is there twice; keep one of them")
        systems[system.name] = system
    file.finish()
    return PortableTable(tolerance, reason, tuple(systems.values()))


def _system(section: Section, complaint: Callable[[str], str | None]) -> KnownSystem:
    name, date, source = section.text("name"), section.date("date").isoformat(), section.text("source")
    variants = section.table("fraction")
    if variants is None or not variants.names:
        raise section.error(None, 'lacks fractions: a table headed [system.fraction."VARIANT"]')
    fractions: dict[str, dict[str, float]] = {}
    for variant in variants.names:
        wrong = complaint(variant)
        if wrong:
            raise variants.error(variant, wrong)
        bounds = variants.table(variant)
        assert bounds is not None
        for bound in bounds.names:
            if bound not in BOUNDS:
                raise bounds.error(bound, f"is no bound; {nearest(bound, BOUNDS)}")
        fractions[variant] = {bound: bounds.number(bound, above=0.0) for bound in bounds.names}
        if not fractions[variant]:
            raise variants.error(variant, f"holds no fraction; known are {', '.join(BOUNDS)}")
    section.finish()
    return KnownSystem(name, date, source, fractions)
