"""Which known traps a user's own batch script has. Pure: text in, findings out; `command` is what people call.

Each rule is a function of what was read: a finding is what the text shows, never a guess at what it hides. Where a rule
comes from stands in docs/job-scripts.md.
"""

from __future__ import annotations

from perf.cluster.lint import cores, running
from perf.cluster.lint.findings import Finding, Job
from perf.cluster.lint.job import launches, size_of
from perf.cluster.lint.reader import read_script

__all__ = ["Finding", "lint"]


def lint(text: str) -> list[Finding]:
    """Return what is wrong with a batch script, in the order of its lines; empty where nothing was found."""
    script = read_script(text)
    job = Job(script, size_of(script), tuple(launches(script)))
    found = {finding for rule in (*cores.RULES, *running.RULES) for finding in rule(job)}
    return sorted(found, key=lambda each: (each.line, each.name))
