"""A Slurm for tests. Skips, with the reason, where its packages are missing."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.slurm import packages
from tests.slurm.cluster import Cluster, sweep
from tests.slurm.jobs import Jobs
from tests.slurm.recording import file_for, text_of

PREFIX = "stackproof-slurm-"


def pytest_addoption(parser):
    parser.addoption("--record", action="store_true", help="write tests/perf/cluster/recorded anew")


def started(accounting):
    lacking = packages.missing(accounting=accounting)
    if lacking:
        pytest.skip(packages.sentence(lacking))
    sweep(Path(tempfile.gettempdir()), PREFIX)
    # Not pytest's tmp_path: the sockets in it need a short path.
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        cluster = Cluster.create(folder, accounting=accounting, owner=os.getpid())
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def cluster():
    """A running cluster with accounting."""
    yield from started(accounting=True)


@pytest.fixture(scope="session")
def cluster_without_accounting():
    """A running cluster whose sacct says that accounting storage is disabled."""
    yield from started(accounting=False)


@pytest.fixture
def slurm(cluster, tmp_path, monkeypatch):
    """The jobs of a cluster that is whole and empty, before the test and after it. This process finds it too."""
    yield from ready(cluster, tmp_path, monkeypatch)


@pytest.fixture
def slurm_without_accounting(cluster_without_accounting, tmp_path, monkeypatch):
    """The same, of the cluster without accounting."""
    yield from ready(cluster_without_accounting, tmp_path, monkeypatch)


def ready(cluster, tmp_path, monkeypatch):
    environment = cluster.environment()
    for name in os.environ.keys() - environment.keys():  # of another cluster, or of a job that we run in
        monkeypatch.delenv(name)
    for name, value in environment.items():
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
