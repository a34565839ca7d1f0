"""The files of a run that was submitted as jobs: the run's own, and each job's. Reads and writes them."""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from perf import contract
from perf.cluster.jobs import Job
from perf.cluster.proof import End, Ending, Marker, parse_marker
from perf.cluster.scheduler import Usage
from perf.records import TESTS

CLUSTER_FILE = "cluster.json"
SITE_FILE = "site.toml"


class NoClusterRun(ValueError):
    """A folder that is no run of jobs. The message says what was looked for."""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """``cluster.json``: everything that is needed to go on with a run from another shell."""

    run: str
    kind: str
    stack: str
    created: float
    user: str
    host: str
    arguments: list[str]
    most_jobs: int
    jobs: list[Job]
    left_out: dict[str, str] = {}
    fleet: str = ""
    """``each-node`` or ``confirm-on`` where the jobs repeat one another on different nodes."""


@dataclass(frozen=True)
class JobFolder:
    """``results/<run>/jobs/<job>``."""

    path: Path

    @property
    def script(self) -> Path:
        """The job script."""
        return self.path / "job.sh"

    @property
    def stdout(self) -> Path:
        """What it prints."""
        return self.path / "stdout"

    @property
    def node_ids(self) -> Path:
        """The tests, one a line."""
        return self.path / "nodeids.txt"

    def prepare(self, job: Job, script: str) -> None:
        """Make the folder with all that a job needs."""
        self.path.mkdir(parents=True)
        self._write("job.json", msgspec.json.format(msgspec.json.encode(job), indent=2).decode() + "\n")
        self._write("nodeids.txt", "".join(f"{node_id}\n" for node_id in job.node_ids))
        self._write("job.sh", script)
        self.script.chmod(0o755)

    def note_submitted(self, job_id: str) -> None:
        """Keep the job's id, at once: whoever comes later can cancel it."""
        self._write("id", json.dumps({"id": job_id, "submitted": time.time()}) + "\n")

    def submitted(self) -> tuple[str, float] | None:
        """Return the job's id and when it was submitted (Unix time); None if it was not."""
        try:
            found = json.loads((self.path / "id").read_text(encoding="utf-8"))
            return str(found["id"]), float(found["submitted"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def marker(self) -> Marker | None:
        """Return the end marker, if it is there."""
        try:
            return parse_marker((self.path / "exit_code").read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None

    def started(self) -> float | None:
        """Return when the script started (Unix time); None where it has not."""
        try:
            return float((self.path / "started" / "at").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def started_again(self) -> bool:
        """Whether it was started a second time."""
        return (self.path / "started_again").exists()

    def missing(self, job: Job) -> int:
        """Return how many tests have left no outcome."""
        return len(set(job.node_ids) - self.finished_tests())

    def finished_tests(self) -> set[str]:
        """Return the node ids of the tests that have left an outcome, as far as they can be read."""
        try:
            lines = (self.path / TESTS).read_bytes().split(b"\n")
        except OSError:
            return set()
        found = set()
        for line in lines:
            try:
                outcome = json.loads(line)
            except ValueError:
                # A job that was killed may have left half a line.
                continue
            if isinstance(outcome, dict) and isinstance(outcome.get("test"), str):
                found.add(outcome["test"])
        return found

    def note_ending(self, ending: Ending, usage: Usage | None) -> None:
        """Keep how it ended."""
        facts = {
            "end": ending.end.value,
            "sentence": ending.sentence,
            "status": ending.status,
            "usage": None if usage is None else dataclasses.asdict(usage),
        }
        self._write("ending.json", json.dumps(facts, indent=2) + "\n")

    def ending(self) -> tuple[Ending, Usage | None] | None:
        """Return how it ended, if that was found out before."""
        try:
            found = json.loads((self.path / "ending.json").read_text(encoding="utf-8"))
            usage = found["usage"]
            return (
                Ending(End(found["end"]), str(found["sentence"]), found["status"]),
                None if usage is None else Usage(**usage),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, name: str, text: str) -> None:
        contract.write_whole(str(self.path / name), text)


@dataclass(frozen=True)
class RunFolder:
    """``results/<run>`` of a run of jobs."""

    path: Path

    def job(self, name: str) -> JobFolder:
        """Return a job's folder."""
        return JobFolder(self.path / "jobs" / name)

    def write(self, submission: Submission, site_text: str) -> None:
        """Keep what was asked for, with the site file as it was."""
        contract.write_whole(str(self.path / SITE_FILE), site_text)
        text = msgspec.json.format(msgspec.json.encode(submission), indent=2).decode() + "\n"
        contract.write_whole(str(self.path / CLUSTER_FILE), text)

    def note_cancelled(self, why: str) -> None:
        """Keep that somebody has cancelled the run, for the process that follows it."""
        contract.write_whole(str(self.path / "cancelled"), why + "\n")

    def cancelled(self) -> str:
        """Return why the run was cancelled; '' if it was not."""
        try:
            return (self.path / "cancelled").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def read(self) -> Submission:
        """Return what was asked for.

        Raises
        ------
        NoClusterRun
            If the folder is no run of jobs, or its file can't be read.
        """
        path = self.path / CLUSTER_FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=Submission)
        except OSError as error:
            raise NoClusterRun(
                f"{self.path} is no run that was submitted as jobs: {path.name} can't be read ({error.strerror}). "
                f"Name the folder of one, such as results/latest"
            ) from error
        except msgspec.DecodeError as error:
            raise NoClusterRun(f"{path} can't be used: {error}") from error
