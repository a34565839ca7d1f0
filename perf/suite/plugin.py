"""pytest's hooks of a run and its reports. What they decide is decided in the modules beside this one."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.junitxml import xml_key

from perf.report.junit import failure_properties, run_properties
from perf.suite.option_words import add_options
from perf.suite.options import read_options
from perf.suite.outcomes import (
    EXIT_INVALID,
    INFRASTRUCTURE,
    LETTERS,
    TALLY,
    UNEXPECTED,
    ExpectedMiss,
    LimitMissed,
    Tally,
    Unproven,
    exit_status,
)
from perf.suite.selection import MARKS, PERF, expand_markexpr, members_of, need_of
from perf.suite.session import SESSION, Session
from perf.tomlfile import TomlError
from perf.verdict.outcome import Verdict

PROCESSES: pytest.StashKey[int] = pytest.StashKey()
"""How many would measure (``-n``), where a plan is asked for."""
SENTENCE: pytest.StashKey[str] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the suite's options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register marks, expand ``-m``, and open the run's folder where perf tests are asked for."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    config.option.markexpr = expand_markexpr(getattr(config.option, "markexpr", "") or "")
    config.stash[TALLY] = Tally()
    options = read_options(config)
    if options.plan:
        # One process tells the plan; xdist looks at these later.
        config.stash[PROCESSES] = int(getattr(config.option, "numprocesses", None) or 1)
        config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    if workerinput is not None:
        run = workerinput.get("stackproof_run")
        session = Session(options, Path(run) if run else None, worker=workerinput["workerid"])
    else:
        session = Session(options, None)
        if _measures(config):
            try:
                # A mistake in a reference file is told before anything is measured.
                _ = session.references
            except TomlError as error:
                raise pytest.UsageError(str(error)) from error
        if _measures(config):
            try:
                folder = session.run.folder
            except OSError as error:
                raise pytest.UsageError(
                    f"--results {options.results}: no run can be kept there ({error.strerror}: {error.filename})"
                ) from error
            if not config.option.xmlpath:
                config.option.xmlpath = str(folder / "junit.xml")
    config.stash[SESSION] = session


def _measures(config: pytest.Config) -> bool:
    """Whether this invocation is about perf tests and will run them."""
    folder = config.rootpath / PERF
    named = [Path(config.invocation_params.dir, str(a).split("::")[0]).resolve() for a in config.args]
    option = config.option
    if (
        option.collectonly
        or option.plan
        or option.help
        or option.markers
        or option.showfixtures
        or option.show_fixtures_per_test
    ):
        return False
    return any(path == folder or folder in path.parents or path in folder.parents for path in named)


class Distribution:
    """Hooks that only exist where xdist is loaded."""

    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker which run it is part of."""
        session = node.config.stash[SESSION]
        node.workerinput["stackproof_run"] = str(session.run.folder) if session.has_run else ""

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Split by group."""
        from perf.suite.scheduling import GroupScheduling

        return GroupScheduling(config, log)

    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """A worker that crashed judged nothing: that is infrastructure, not a failed number."""
        report.verdict = INFRASTRUCTURE


def pytest_plugin_registered(manager: pytest.PytestPluginManager) -> None:
    """Add the hooks for xdist once xdist is there."""
    if manager.hasplugin("dsession") and not manager.hasplugin("stackproof-distribution"):
        manager.register(Distribution(), "stackproof-distribution")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which run this is."""
    return config.stash[SESSION].header()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Tell the plan and end, where that is asked for."""
    options = session.config.stash[SESSION].options
    if not options.plan:
        return None
    from perf.suite.measuring import INFRASTRUCTURE_ERRORS
    from perf.suite.plan_shown import lines_of, machine_of

    tests = [
        (need, members_of(item))
        for item in session.items
        if (need := need_of(item.iter_markers())) is not None
    ]
    try:
        machine = machine_of(options)
    except INFRASTRUCTURE_ERRORS as error:
        pytest.exit(f"nothing can be planned: {error}", returncode=EXIT_INVALID)
    reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
    for line in lines_of(options, tests, machine, session.config.stash[PROCESSES]):
        reporter.write_line(line)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a report its verdict."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    # A report's own attributes travel from xdist's workers to its controller.
    if isinstance(error, Unproven):
        vars(report)["verdict"] = error.verdict.value
        if isinstance(report.longrepr, tuple):
            # Path, line and the reason in words, without the name of a Python class: JUnit shows it.
            report.longrepr = (*report.longrepr[:2], str(error))
    elif error is not None and item.config.stash[SESSION].is_unavailable(error):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {error}")
    elif error is not None and item.config.stash[SESSION].is_infrastructure(error):
        vars(report)["verdict"] = INFRASTRUCTURE
        if item.config.stash[SESSION].lacks_stack(error) and not hasattr(item.config, "workerinput"):
            # Each further test would end with the same words.
            item.session.shouldfail = "no test can be run without the stack"
        item.user_properties.extend(failure_properties(getattr(error, "facts", {})))
        # The message tells all; the driver's own frames would only hide it.
        report.longrepr = str(error)
    elif isinstance(error, (LimitMissed, ExpectedMiss)):
        report.longrepr = str(error)
    elif call.when == "call" and report.passed and UNEXPECTED in item.stash:
        # pytest shows a passed report with this attribute as XPASS, and lists it under -rX.
        vars(report)["wasxfail"] = item.stash[UNEXPECTED]
    if need_of(item.iter_markers()):
        vars(report)["stackproof"] = True
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Give inconclusive, invalid and unreferenced their own words and letters."""
    verdict = getattr(report, "verdict", None)
    if verdict is None or verdict == INFRASTRUCTURE:
        return None
    return LETTERS[Verdict(verdict)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the reports of perf tests; the tally lives where the exit status is set."""
    if _CONFIG and (getattr(report, "stackproof", False) or hasattr(report, "verdict")):
        _CONFIG[-1].stash[TALLY].add(report)
        if not hasattr(_CONFIG[-1], "workerinput"):
            _CONFIG[-1].stash[SESSION].keep(report)


_CONFIG: list[pytest.Config] = []
"""The configuration of this process: `pytest_runtest_logreport` is not given it. Inner runs of tests nest."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start drawing progress; in a job, get ready to be ended by the scheduler."""
    if session.config.stash[SESSION].options.job_folder is not None:
        from perf.launch.signals import end_in_order_on_sigterm

        end_in_order_on_sigterm()
    _CONFIG.append(session.config)
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    mine = session.config.stash[SESSION]
    if mine.compares and reporter is not None:
        mine.show_stacks(reporter)
    mine.start_drawing(session.config, reporter)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Set the exit status of a run in which perf tests were collected."""
    config = session.config
    mine = config.stash[SESSION]
    mine.close()
    mine.stop_drawing()
    if hasattr(config, "workerinput") or config.option.collectonly or not mine.has_run:
        return
    xml = config.stash.get(xml_key, None)
    if xml is not None:
        for name, value in run_properties(str(mine.run.folder), mine.options.profile):
            xml.add_global_property(name, value)
    status, sentence = exit_status(
        config.stash[TALLY], int(exitstatus), smoke=mine.options.profile == "smoke"
    )
    session.exitstatus = status
    config.stash[SENTENCE] = sentence


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print one row a variant, one a verdict, the reasons, and what the exit status means."""
    mine = config.stash[SESSION]
    if mine.has_run and not hasattr(config, "workerinput"):
        mine.summarize(terminalreporter, config.stash.get(SENTENCE, ""))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of what the session holds."""
    if _CONFIG and _CONFIG[-1] is config:
        _CONFIG.pop()
