"""A real Slurm of two nodes on one machine: munge, MariaDB, slurmdbd, slurmctld, two slurmd.

Everything is its own: ports, folders, munge's key and socket, the names of its control groups. A Slurm that the machine
has in production is neither read nor touched.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.slurm import cgroups, config, packages, processes
from tests.slurm.config import Layout
from tests.slurm.files import read_layout, write_files
from tests.slurm.ports import free_ports, listens
from tests.slurm.processes import DaemonError

NVIDIA = "/dev/nvidia"
"""Device files of the GPUs, a number behind it."""

CLEARED = ("SLURM", "SBATCH", "SALLOC", "SRUN", "SQUEUE", "SACCT", "SCANCEL", "SINFO", "PMI")
"""Beginnings of variables that would reach into this cluster from another one, or from a job of it."""


class Cluster:
    """A cluster in a folder. Another process can open the same folder and stop it.

    Parameters
    ----------
    layout
        What the cluster is; `create` makes one, `load` reads it back.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.root = layout.root

    # --- making

    @classmethod
    def create(
        cls, root: Path, *, accounting: bool = True, owner: int | None = None, gpus: int = 0
    ) -> Cluster:
        """Write the configuration of a new cluster into `root`, which must be empty or missing. Starts nothing.

        Parameters
        ----------
        root
            Its folder, a short path.
        accounting
            With MariaDB and slurmdbd.
        gpus
            Not 0: one node, this machine with its cores, and so many of its NVIDIA GPUs for training on them.
        owner
            Process with which the cluster ends: once it is gone, `sweep` stops and removes the cluster.
        """
        root = root.absolute()
        if root.exists() and any(root.iterdir()):
            raise FileExistsError(
                f"{root} is not empty. Name a new folder, or stop the cluster that lies there."
            )
        # Paths of sockets end at 107 characters (unix(7)).
        if len(os.fsencode(root)) > 80:
            raise ValueError(f"{root} is too long a path for the sockets in it: at most 80 bytes.")
        machine = _this_machine(gpus) if gpus else {}
        names = config.NODES[:1] if gpus else config.NODES
        ports = free_ports(3 + len(names))
        layout = Layout(
            root=root,
            host=socket.gethostname().split(".")[0],
            user=getpass.getuser() if os.geteuid() else "root",
            controller=ports[0],
            database=ports[1],
            accounting=ports[2],
            nodes=tuple(ports[3:]),
            with_accounting=accounting,
            cgroup=cgroups.claim(names),
            names=names,
            **machine,
        )
        cluster = cls(layout)
        try:
            write_files(layout)
            if owner is not None:
                processes.note(processes.identify("owner", owner), root)
        except BaseException:
            if layout.cgroup:
                cgroups.release(names)
            raise
        return cluster

    @classmethod
    def load(cls, root: Path) -> Cluster:
        """Open the cluster that was made in `root`."""
        return cls(read_layout(root.absolute()))

    # --- the environment

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs to find this cluster."""
        return {"SLURM_CONF": str(self.root / "slurm.conf")}

    def environment(self) -> dict[str, str]:
        """Return this process' environment with this cluster in it and every other one taken out."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(CLEARED)}
        return {**kept, "PATH": packages.search_path(), **self.variables}

    def run(
        self, *command: str, check: bool = True, timeout: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command against this cluster and return what it said.

        Raises
        ------
        DaemonError
            It failed and `check` is set.
        """
        done = subprocess.run(
            command,
            env=self.environment(),
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise DaemonError(
                f"{' '.join(command)} ended with {done.returncode}: {done.stderr or done.stdout}"
            )
        return done

    # --- starting and stopping

    def start(self) -> None:
        """Start every daemon and wait until both nodes take jobs. On failure stop again what was started."""
        lacking = packages.missing(accounting=self.layout.with_accounting)
        if lacking:
            raise DaemonError(packages.sentence(lacking))
        try:
            self._start_munge()
            if self.layout.with_accounting:
                self._start_database()
                self.start_accounting()
            self.start_controller()
            for node in self.layout.names:
                self.start_node(node)
            self.wait_for_nodes(self.layout.names, ("idle",))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Cancel every job, end every daemon and every process of a job, and remove the control groups."""
        running = processes.known(self.root)
        if "slurmctld" in running and running["slurmctld"].process() is not None:
            self._cancel_all()
        for name in ("slurmctld", *(f"slurmd-{node}" for node in self.layout.names), "slurmdbd", "mariadbd"):
            if name in running:
                processes.stop(running[name], self.root)
        # Whoever has our slurm.conf in its environment is a step, or something that a job started.
        processes.end(processes.of_environment("SLURM_CONF", self.variables["SLURM_CONF"]), 5.0)
        if "munged" in running:
            processes.stop(running["munged"], self.root)
        left = cgroups.release(self.layout.names) if self.layout.cgroup else []
        if left:
            raise DaemonError(f"These control groups would not go: {', '.join(map(str, left))}")

    def remove(self) -> None:
        """Stop, and remove the folder."""
        self.stop()
        shutil.rmtree(self.root)

    def _cancel_all(self) -> None:
        self.run("scancel", f"--user={self.layout.user}", check=False)
        limit = time.monotonic() + 15.0  # KillWait is 3 s; what is left after that is ended as a process
        while time.monotonic() < limit:
            if not self.run("squeue", "--noheader", check=False).stdout.strip():
                return
            time.sleep(0.2)

    def clear(self) -> None:
        """Make the cluster whole and empty: daemons that a test stopped are started, nodes resumed, jobs cancelled."""
        alive = {name for name, each in processes.known(self.root).items() if each.process() is not None}
        if self.layout.with_accounting and "slurmdbd" not in alive:
            self.start_accounting()
        if "slurmctld" not in alive:
            self.start_controller()
        self._cancel_all()
        for node in self.layout.names:
            if f"slurmd-{node}" not in alive:
                self.start_node(node)
        for node, state in self.node_states().items():
            if state.startswith(("down", "drain")):
                self.set_node(node, "resume")
        self.wait_for_nodes(self.layout.names, ("idle",))

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=packages.search_path())
        if found is None:
            raise DaemonError(packages.sentence([packages.PACKAGES[name]]))
        return found

    def _daemon(self, name: str, *command: str) -> processes.Running:
        return processes.start(name, [self._program(command[0]), *command[1:]], self.root, self.environment())

    def _start_munge(self) -> None:
        folder = self.root / "munge"
        key = folder / "key"
        if not key.exists():
            self.run(self._program("mungekey"), f"--keyfile={key}", "--create")
        munged = self._daemon(
            "munged",
            "munged",
            "--foreground",
            "--force",  # root's own folder below /tmp: munged would rather have /run/munge
            f"--socket={self.layout.munge_socket}",
            f"--key-file={key}",
            f"--pid-file={folder}/pid",
            f"--log-file={self.root}/log/munged.log",
            f"--seed-file={folder}/seed",
        )
        processes.wait_for("listening", self.layout.munge_socket.exists, munged, self.root)

    def _start_database(self) -> None:
        data = self.root / "database"
        if not any(data.iterdir()):
            self.run(
                self._program("mariadb-install-db"),
                "--no-defaults",
                f"--user={self.layout.user}",
                f"--datadir={data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                timeout=120.0,
            )
        database = self._daemon("mariadbd", "mariadbd", *config.database_options(self.layout))
        processes.wait_for("listening", lambda: listens(self.layout.database), database, self.root)

    def start_accounting(self) -> None:
        """Start slurmdbd."""
        slurmdbd = self._daemon("slurmdbd", "slurmdbd", "-D")
        processes.wait_for("listening", lambda: listens(self.layout.accounting), slurmdbd, self.root)
        clusters = self.run(
            "sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster"
        ).stdout
        if config.CLUSTER not in clusters.split():
            self.run("sacctmgr", "--immediate", "add", "cluster", config.CLUSTER)

    def stop_accounting(self) -> None:
        """Stop slurmdbd. The controller keeps what it would have said until slurmdbd is back."""
        processes.stop(processes.known(self.root)["slurmdbd"], self.root)

    def start_controller(self) -> None:
        """Start slurmctld. It takes up the jobs that it knew when it stopped."""
        controller = self._daemon("slurmctld", "slurmctld", "-D")
        processes.wait_for("answering", self._pinged, controller, self.root)

    def stop_controller(self) -> None:
        """Stop slurmctld and leave jobs running."""
        processes.stop(processes.known(self.root)["slurmctld"], self.root)

    def _pinged(self) -> bool:
        return self.run("scontrol", "ping", check=False).returncode == 0

    # --- nodes

    def start_node(self, node: str) -> None:
        """Start the slurmd of a node."""
        name = f"slurmd-{node}"
        slurmd = self._daemon(name, "slurmd", "-D", "-N", node)
        port = self.layout.nodes[self.layout.names.index(node)]
        processes.wait_for("listening", lambda: listens(port), slurmd, self.root)

    def crash_node(self, node: str) -> None:
        """Kill a node's slurmd and every step on it, as a power cut would. The controller notices by SlurmdTimeout."""
        running = processes.known(self.root)[f"slurmd-{node}"]
        daemon = running.process()
        inside = [
            process
            for process in processes.of_environment("SLURM_CONF", self.variables["SLURM_CONF"])
            if processes.variable(process, "SLURMD_NODENAME") == node
        ]
        # slurmstepd, which does not name its node, first, or it would still report how its children ended.
        steps = [parent for process in inside if (parent := processes.parent(process, "slurmstepd"))]
        inside = [*steps, *inside]
        processes.kill([*([daemon] if daemon else []), *inside])
        processes.stop(running, self.root)

    def set_node(self, node: str, state: str, reason: str = "set by a test") -> None:
        """Set a node's state as an administrator does: down (jobs on it end as NODE_FAIL), drain, resume."""
        words = [f"NodeName={node}", f"State={state}"]
        if state.lower() != "resume":
            words.append(f"Reason={reason}")
        self.run("scontrol", "update", *words)

    def node_states(self) -> dict[str, str]:
        """Return what sinfo says of each node."""
        lines = self.run("sinfo", "--noheader", "--Node", "--format=%N %T", check=False).stdout.splitlines()
        return dict(line.split() for line in lines)

    def wait_for_nodes(self, nodes: Iterable[str], states: Iterable[str], seconds: float = 60.0) -> None:
        """Wait until each of the nodes is in one of the states."""
        wanted, allowed = list(nodes), set(states)
        limit = time.monotonic() + seconds
        while True:
            seen = self.node_states()
            if all(seen.get(node) in allowed for node in wanted):
                return
            if time.monotonic() > limit:
                raise DaemonError(
                    f"After {seconds:g} s the nodes are {seen}, not {sorted(allowed)}.\n"
                    + "\n".join(processes.said(name, self.root) for name in ("slurmctld", *self.layout.names))
                )
            time.sleep(0.2)


def _this_machine(gpus: int) -> dict[str, Any]:
    """Return what a node claims that is this machine, and whose GPUs are used."""
    lacking = [name for number in range(gpus) if not Path(name := f"{NVIDIA}{number}").exists()]
    if lacking:
        raise FileNotFoundError(f"{lacking[0]} is missing: this machine has fewer than {gpus} NVIDIA GPUs.")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "memory": memory * 9 // 10,  # the daemons live on it too
        "gpus": gpus,
        "devices": NVIDIA,
    }


def sweep(folder: Path, prefix: str) -> list[Path]:
    """Stop and remove the clusters below `folder` whose owner is gone (killed, so that it could not); return them."""
    swept = []
    for root in sorted(folder.glob(f"{prefix}*")):
        try:
            owner = processes.known(root).get("owner")
            if owner is not None and owner.process() is None:
                Cluster.load(root).remove()
                swept.append(root)
        except OSError:  # somebody else's, or just being removed
            continue
    return swept
