"""The text of every file that a cluster on one machine reads. Pure: a layout in, text out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CLUSTER = "stackproof"
NODES = ("n1", "n2")
CPUS = 4
"""Cores that each node claims to have. slurmd believes it (config_overrides); no task is tied to a core."""

MEMORY = 4000
"""MB that each node claims to have."""

GPUS = 2
"""GPUs that each node claims to have: links to a device, enough for Slurm to count them and to name them to a job."""


@dataclass(frozen=True)
class Layout:
    """Where a cluster lives and what it can do.

    Attributes
    ----------
    root
        Its folder. Everything that a daemon writes lies below it, except control groups.
    host
        Name of this machine, as `hostname -s` says it: slurmd compares it.
    user
        Who runs the daemons and owns the cluster.
    controller, database, accounting, nodes
        TCP ports on 127.0.0.1: slurmctld, MariaDB, slurmdbd, and one a slurmd.
    with_accounting
        False: no MariaDB and no slurmdbd; sacct then says that accounting storage is disabled.
    names, cpus, memory, gpus
        The nodes' names, and the cores, MB and GPUs that each claims to have.
    devices
        Beginning of the GPUs' device files, a number behind it; empty: links to one device, which no program can use.
    cgroup
        Memory is limited by control groups (v1). Only one cluster of a machine can have them: Slurm 22.05 names them
        after the node, and its cgroup.conf has no word for another name.
    """

    root: Path
    host: str
    user: str
    controller: int
    database: int
    accounting: int
    nodes: tuple[int, ...]
    with_accounting: bool = True
    cgroup: bool = False
    names: tuple[str, ...] = NODES
    cpus: int = CPUS
    memory: int = MEMORY
    gpus: int = GPUS
    devices: str = ""

    @property
    def munge_socket(self) -> Path:
        """Where this cluster's own munged listens."""
        return self.root / "munge" / "socket"


def slurm_conf(layout: Layout) -> str:
    """Return slurm.conf."""
    root = layout.root
    memory = "task/cgroup" if layout.cgroup else "task/none"
    storage = (
        f"AccountingStorageType=accounting_storage/slurmdbd\n"
        f"AccountingStorageHost=127.0.0.1\n"
        f"AccountingStoragePort={layout.accounting}\n"
        f"AccountingStoragePass={layout.munge_socket}\n"
        f"AccountingStorageTRES=gres/gpu\n"
        if layout.with_accounting
        else f"AccountingStorageType=accounting_storage/none\n"
        f"JobCompType=jobcomp/filetxt\n"
        f"JobCompLoc={root}/jobcomp.txt\n"
    )
    nodes = "".join(
        f"NodeName={name} NodeHostname={layout.host} NodeAddr=127.0.0.1 Port={port} "
        f"CPUs={layout.cpus} RealMemory={layout.memory} Gres=gpu:{layout.gpus} State=UNKNOWN\n"
        for name, port in zip(layout.names, layout.nodes, strict=True)
    )
    return f"""# Written by tests/slurm/config.py: two nodes on one machine, for tests.
ClusterName={CLUSTER}
SlurmctldHost={layout.host}(127.0.0.1)
SlurmctldPort={layout.controller}
SlurmUser={layout.user}
SlurmdUser={layout.user}
AuthType=auth/munge
AuthInfo=socket={layout.munge_socket}
CredType=cred/munge
StateSaveLocation={root}/state
SlurmctldPidFile={root}/slurmctld.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdSpoolDir={root}/%n/spool
SlurmdPidFile={root}/%n/slurmd.pid
SlurmdLogFile={root}/log/%n.log
# Without systemd and with few control groups: processes are followed by their parents.
ProctrackType=proctrack/linuxproc
TaskPlugin={memory}
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
GresTypes=gpu
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
ReturnToService=2
# Everything soon: a test waits for it.
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2
SlurmctldTimeout=30
SlurmdTimeout=15
KillWait=3
UnkillableStepTimeout=30
InactiveLimit=0
MinJobAge=300
# A job in `urgent` throws those in `batch` out.
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
{storage}{nodes}PartitionName=DEFAULT Nodes={",".join(layout.names)} MaxTime=60 DefaultTime=10
PartitionName=batch Default=YES PriorityTier=1 PreemptMode=CANCEL
PartitionName=urgent PriorityTier=10 PreemptMode=OFF
"""


def slurmdbd_conf(layout: Layout, password: str) -> str:
    """Return slurmdbd.conf, which slurmdbd wants readable by its owner alone."""
    return f"""AuthType=auth/munge
AuthInfo=socket={layout.munge_socket}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={layout.accounting}
SlurmUser={layout.user}
LogFile={layout.root}/log/slurmdbd.log
PidFile={layout.root}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={layout.database}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct
"""


def gres_conf(layout: Layout) -> str:
    """Return gres.conf: one link to a device a GPU."""
    return "".join(
        f"NodeName={name} Name=gpu File={layout.root}/{name}/gpu[0-{layout.gpus - 1}]\n"
        for name in layout.names
    )


def cgroup_conf(layout: Layout) -> str:
    """Return cgroup.conf: memory is limited where the machine lets us, and nothing else is.

    slurmd makes ready for control groups even when no plugin uses any. Under v2 it then wants systemd or a writable
    hierarchy, and gives up without; v1 does nothing until it is used. So it is always v1, and where there is no v1 to
    use, its mount point is an empty folder.
    """
    if not layout.cgroup:
        return f"CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nCgroupMountpoint={layout.root}/cgroup\n"
    return (
        "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
        "ConstrainRAMSpace=yes\nConstrainSwapSpace=yes\nAllowedSwapSpace=0\n"
    )


def database_options(layout: Layout) -> list[str]:
    """Return mariadbd's options. --no-defaults has to be the first: it keeps /etc/mysql out."""
    data = layout.root / "database"
    return [
        "--no-defaults",
        f"--user={layout.user}",
        f"--datadir={data}",
        f"--socket={layout.root}/database.sock",
        f"--pid-file={layout.root}/mariadbd.pid",
        f"--port={layout.database}",
        "--bind-address=127.0.0.1",
        f"--init-file={layout.root}/database.sql",
        # What slurmdbd asks for (it complains below these), and no more: the database lives for some minutes.
        "--innodb-buffer-pool-size=64M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
        "--skip-log-bin",
    ]


def database_sql(password: str) -> str:
    """Return what MariaDB runs at its start: slurmdbd's database and user. The password is hexadecimal digits."""
    return (
        "CREATE DATABASE IF NOT EXISTS slurm_acct;\n"
        f"CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        f"CREATE USER IF NOT EXISTS 'slurm'@'localhost' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON slurm_acct.* TO 'slurm'@'127.0.0.1';\n"
        "GRANT ALL ON slurm_acct.* TO 'slurm'@'localhost';\n"
    )
