"""One pytest process's part of a run. Light: what launches and what draws is imported when a perf test needs it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perf import records
from perf.catalogue import COMPARING, Member
from perf.suite.options import Options
from perf.suite.outcomes import outcome_of

if TYPE_CHECKING:
    from perf.suite.drawing import Drawing
    from perf.suite.explaining import Explainer
    from perf.suite.judge import Judge
    from perf.suite.measuring import Measuring
    from perf.verdict.references import ReferenceFile

__all__ = ["SESSION", "Session"]


class Session:
    """Holds what the tests of one process share. Nothing is looked up before a perf test needs it.

    Parameters
    ----------
    options
        The run's options.
    folder
        The run's folder, where another process (xdist's controller) has opened it.
    worker
        Name of the xdist worker, or empty.
    """

    def __init__(self, options: Options, folder: Path | None, worker: str = "") -> None:
        self.options = options
        self.worker = worker
        part_of = options.job_folder.parent.parent.name if options.job_folder else ""
        self._run = records.Run(folder, part_of) if folder else None
        self._drawing: Drawing | None = None
        self.named: frozenset[Member] = frozenset()
        """Members that the selected tests name, once they are collected."""
        self.extra_launches: Callable[[Member], int] = lambda member: 0
        """How many launches a member gets beside the judged ones, where a budget asks for that."""

    @property
    def has_run(self) -> bool:
        """Whether this invocation measures or judges."""
        return self._run is not None

    @property
    def compares(self) -> bool:
        """Whether this process is to launch two stacks, or has others do it, and may say what they are."""
        measures = self.has_run and not self.worker and not self.options.records
        return measures and self.options.profile in COMPARING

    @property
    def run(self) -> records.Run:
        """The run's folder, made if need be."""
        if self._run is None:
            job = self.options.job_folder
            # results/<run>/jobs/<job>: the job's records are the run's, to which they will be added.
            self._run = (
                records.Run(job, part_of=job.parent.parent.name)
                if job
                else records.Run.create(self.options.results)
            )
        return self._run

    @functools.cached_property
    def measuring(self) -> Measuring:
        """The stack, the machine, and where launches come from."""
        from perf.suite.measuring import Measuring

        return Measuring(self.options, self.run, self.worker, lambda member: member in self.named)

    @functools.cached_property
    def references(self) -> list[ReferenceFile]:
        """Every reference file of the folder that was asked for.

        Raises
        ------
        TomlError
            If one can't be used.
        """
        from perf.suite.library import read_references

        return read_references(self.options.references)

    def judge(
        self, test: str, user_properties: list[tuple[str, object]], surprise: Callable[[str], None]
    ) -> Judge:
        """Return the judge of one test; a verdict also goes to the test's properties, which JUnit shows."""
        from perf.report.junit import properties
        from perf.suite.judge import Judge

        def record(verdict: records.VerdictRecord) -> None:
            self.run.append(records.VERDICTS, verdict)
            user_properties.extend(properties(verdict))

        return Judge(
            self.measuring.source,
            test,
            self.options.sized_profile,
            self.run.name,
            record,
            library=self.measuring.library(self.references),
            earlier=self.measuring.earlier,
            margin=self.options.margin,
            surprise=surprise,
            overrides=self.options.site.limits if self.options.site else {},
            require_references=self.options.require_references,
            explain=self._explainer() if self.options.profile in COMPARING else None,
        )

    def _explainer(self) -> Explainer:
        from perf.suite.explaining import Explainer

        def record(explanation: records.ExplanationRecord) -> None:
            self.run.append(records.EXPLANATIONS, explanation)

        measuring = self.measuring
        return Explainer(
            measuring.source, self.run.name, record, measuring.stacks.both_stacks, always=self.options.why
        )

    def show_stacks(self, terminal: Any) -> None:
        """Ask both stacks of a comparison what they are, and print what they do not agree on."""
        from perf.suite.measuring import INFRASTRUCTURE_ERRORS
        from perf.suite.stacks_shown import show

        try:
            old, new = self.measuring.stacks.both_stacks()
        except INFRASTRUCTURE_ERRORS as error:
            # The first test will end with it, and the run; here it is told before anything is launched.
            terminal.write_line(f"stackproof: the two stacks can't be compared: {error}")
            return
        show(terminal, old, new)

    def is_infrastructure(self, error: BaseException) -> bool:
        """Whether an error says that nothing was measured, rather than that a number is bad."""
        if "measuring" not in vars(self):
            return False
        from perf.suite.measuring import INFRASTRUCTURE_ERRORS

        return isinstance(error, INFRASTRUCTURE_ERRORS)

    def lacks_stack(self, error: BaseException) -> bool:
        """Whether an error says that there is no stack, so that no test can measure anything."""
        if "measuring" not in vars(self):
            return False
        from perf.launch.stack import StackError

        return isinstance(error, StackError) and not self.measuring.stacks.has_stack

    def is_unavailable(self, error: BaseException) -> bool:
        """Whether an error says that this stack or device lacks what a variant asks for: a reason to skip."""
        if "measuring" not in vars(self):
            return False
        from perf.launch.failure import NotAvailable

        return isinstance(error, NotAvailable)

    def header(self) -> list[str]:
        """Return the lines of pytest's header."""
        if not self.has_run or self.worker:
            return []
        return [f"stackproof: profile {self.options.profile}, files in {self.run.folder}"]

    def start_drawing(self, config: pytest.Config, reporter: Any) -> None:
        """Draw progress, in the process that has the terminal."""
        if self.has_run and not self.worker and reporter is not None:
            from perf.suite.drawing import Drawing

            self._drawing = Drawing(self.run.folder, reporter, quiet=config.option.verbose < 0)

    def close(self) -> None:
        """End what this process started to measure."""
        if "measuring" in vars(self):
            self.measuring.close()

    def stop_drawing(self) -> None:
        """Draw what is left and stop."""
        if self._drawing is not None:
            self._drawing.stop()
            self._drawing = None

    def keep(self, report: pytest.TestReport) -> None:
        """Note what became of a test, in the process that writes the report; its parts that only passed say nothing."""
        if self.has_run and (report.when == "call" or not report.passed):
            self.run.append(records.TESTS, outcome_of(report))

    def summarize(self, terminal: Any, sentence: str) -> None:
        """Print the run's tables, line profiles, and what the exit status means."""
        from perf.suite.drawing import summarize

        summarize(self.run.folder, terminal, sentence)


SESSION: pytest.StashKey[Session] = pytest.StashKey()
"""Where pytest's configuration has it."""
