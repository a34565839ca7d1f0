"""A Slurm for tests. Skips, with the reason, where its packages are missing."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.slurm import packages
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import Jobs
from tests.slurm.recording import file_for, text_of


def pytest_addoption(parser):
    parser.addoption(
        "--record", action="store_true", help="write recorded outputs anew (tests/perf/cluster/recorded)"
    )
    parser.addoption(
        "--need-slurm", action="store_true", help="fail, not skip, where Slurm's packages are missing"
    )


def started(pytestconfig, accounting):
    lacking = packages.missing(accounting=accounting)
    if lacking:
        (pytest.fail if pytestconfig.getoption("need_slurm") else pytest.skip)(packages.sentence(lacking))
    # Not pytest's tmp_path: the sockets in it need a short path.
    folder = Path(tempfile.mkdtemp(prefix="stackproof-slurm-"))
    try:
        cluster = Cluster.create(folder, accounting=accounting)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def cluster(pytestconfig):
    """A running cluster with accounting."""
    yield from started(pytestconfig, accounting=True)


@pytest.fixture(scope="session")
def cluster_without_accounting(pytestconfig):
    """A running cluster whose sacct says that accounting storage is disabled."""
    yield from started(pytestconfig, accounting=False)


@pytest.fixture
def slurm(cluster, tmp_path, monkeypatch):
    """The jobs of a cluster that is whole and empty, before the test and after it. This process finds it too."""
    yield from ready(cluster, tmp_path, monkeypatch)


@pytest.fixture
def slurm_without_accounting(cluster_without_accounting, tmp_path, monkeypatch):
    """The same, of the cluster without accounting."""
    yield from ready(cluster_without_accounting, tmp_path, monkeypatch)


def ready(cluster, tmp_path, monkeypatch):
    for name, value in cluster.environment().items():
        monkeypatch.setenv(name, value)
    yield Jobs(cluster, tmp_path)
    cluster.clear()


@pytest.fixture
def record(pytestconfig):
    """Write a job's answers down, with --record; without it, only see that every command answers."""

    def write(name, title, jobs, job=None, answers=None):
        answers = jobs.answers(job) if answers is None else answers
        version = jobs.cluster.run("sbatch", "--version").stdout.strip()
        replace = {
            str(jobs.folder): "/home/user/run",
            str(jobs.cluster.root): "/tmp/cluster",
            jobs.cluster.layout.host: "host",
        }
        text = text_of(title, version, answers, replace)
        if pytestconfig.getoption("record"):
            path = file_for(name, version)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return text

    return write
