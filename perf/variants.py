"""Variants of training: what is trained and how, with ids that read aloud and can be read back.

``mnist_cnn-ddp-2gpu-nccl-fp32-native8`` is the workload `mnist_cnn`, DistributedDataParallel on 2 GPUs over NCCL, in
float32, with torch's own loader and 8 workers a GPU. Without a number the suite chooses it (`perf.suite.feeding`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perf.contract import DDP_SWITCHES, OPTIMIZATIONS
from perf.workloads import MACHINE, SUBJECTS

STRATEGIES = ("single", "dp", "ddp")
DEVICES = {"cpu": "cpu", "gpu": "cuda"}
BACKENDS = ("gloo", "nccl")
PRECISIONS = ("default", "fp32", "tf32", "fp16", "bf16")
LOADERS = ("native", "batched", "resident", "dali")
LOADERS_WITH_WORKERS = ("native", "batched", "dali")
MODES = ("full", "synthetic", "io")

PREFETCH = 2
"""Batches that each of torch's loader workers keeps ready (the DataLoader's default)."""


class VariantError(ValueError):
    """An id or a combination that names no variant."""


@dataclass(frozen=True)
class Variant:
    """One way to train one workload.

    Parameters
    ----------
    count
        GPUs a node; on the CPU processes a node.
    workers, threads, batch
        A device's loader workers, a rank's threads, a device's samples a step; None for the default.
    loader_flags
        How a loader with workers differs from torch's defaults: ``persistent``, ``prefetch<N>``, ``unpinned``.
    optimizations
        Of `perf.contract.OPTIMIZATIONS`, in its order.
    optimizer, schedule
        Names that the workload offers, "" for its own.
    cores
        Cores a device that a rank and its loader workers are tied to; None: the part that the node has for each.
    ddp_knobs
        How DistributedDataParallel differs from its defaults: ``bucket<MB>`` and `perf.contract.DDP_SWITCHES`.
    rate
        How the learning rate follows the global batch: ``none``, ``linear`` or ``sqrt``, and ``warm<STEPS>``; empty for
        the workload's own rate, whatever the batch.
    """

    workload: str
    strategy: str
    device: str
    count: int
    backend: str = "none"
    precision: str = "fp32"
    loader: str = "native"
    workers: int | None = None
    threads: int | None = None
    batch: int | None = None
    mode: str = "full"
    nodes: int = 1
    loader_flags: tuple[str, ...] = ()
    optimizations: tuple[str, ...] = ()
    optimizer: str = ""
    schedule: str = ""
    ddp_knobs: tuple[str, ...] = ()
    rate: tuple[str, ...] = ()
    cores: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be run as it is named."""
        self._refuse_unknown_words()
        self._refuse_impossible_counts()
        self._refuse_unordered_lists()
        if self.workload == MACHINE and (self.threads or self.batch or self.optimizations or self.cores):
            raise VariantError(
                "a machine's rates have no threads, batch, optimizations or cores of their own"
            )

    def _refuse_unknown_words(self) -> None:
        of_machine = self.workload == MACHINE
        for name, value, known in (
            ("workload", self.workload, tuple(SUBJECTS)),
            ("strategy", self.strategy, _MACHINE_STRATEGIES if of_machine else STRATEGIES),
            ("device", self.device, tuple(DEVICES.values())),
            ("precision", self.precision, ("default",) if of_machine else PRECISIONS),
            ("loader", self.loader, ("none",) if of_machine else LOADERS),
            ("mode", self.mode, ("full",) if of_machine else MODES),
            ("backend", self.backend, BACKENDS if self.strategy == "ddp" else ("none",)),
            ("optimizer", self.optimizer, self._choices("optimizers")),
            ("schedule", self.schedule, self._choices("schedules")),
        ):
            if value not in known:
                raise VariantError(
                    f"{name} {value!r} is not one of {', '.join(known)} (strategy {self.strategy})"
                )

    def _refuse_impossible_counts(self) -> None:
        if self.count < 1 or self.nodes < 1 or (self.strategy == "single" and self.count * self.nodes != 1):
            raise VariantError(
                f"{self.strategy} on {self.nodes} nodes with {self.count} devices each is not possible"
            )
        if self.strategy == "dp" and (self.device != "cuda" or self.nodes != 1):
            raise VariantError("DataParallel is for the GPUs of one node")
        if self.ddp_knobs and self.strategy != "ddp":
            raise VariantError(
                f"{'.'.join(self.ddp_knobs)} are knobs of DDP, the strategy is {self.strategy}"
            )
        if self.backend == "nccl" and self.device != "cuda":
            raise VariantError("NCCL is for GPUs")
        numbers = ((self.workers, 0), (self.threads, 1), (self.batch, 1), (self.cores, 1))
        if any(number is not None and number < least for number, least in numbers):
            raise VariantError("workers must be at least 0, threads, batch and cores at least 1")

    def _refuse_unordered_lists(self) -> None:
        if self.optimizations != tuple(o for o in OPTIMIZATIONS if o in self.optimizations):
            raise VariantError(
                f"optimizations {'.'.join(self.optimizations)!r} must be some of {', '.join(OPTIMIZATIONS)}, "
                f"each once, in this order"
            )
        if [f for f in self.loader_flags if not _FLAG.fullmatch(f)] or list(self.loader_flags) != sorted(
            {f.rstrip("0123456789"): f for f in self.loader_flags}.values()
        ):
            raise VariantError(
                f"loader flags {'.'.join(self.loader_flags)!r} must be some of persistent, prefetch<N>, unpinned, "
                f"each once, in this order"
            )
        buckets = [knob for knob in self.ddp_knobs if _BUCKET.fullmatch(knob)]
        ordered = (*buckets[:1], *(switch for switch in DDP_SWITCHES if switch in self.ddp_knobs))
        if self.ddp_knobs != ordered:
            raise VariantError(
                f"knobs of DDP {'.'.join(self.ddp_knobs)!r} must be some of bucket<MB>, {', '.join(DDP_SWITCHES)}, "
                f"each once, in this order"
            )
        if self.rate and not _RATE.fullmatch(".".join(self.rate)):
            raise VariantError(
                f"the rule of a learning rate {'.'.join(self.rate)!r} must be none, linear or sqrt, and perhaps "
                f"warm<STEPS> behind it"
            )
        if self.loader not in LOADERS_WITH_WORKERS and (self.workers is not None or self.loader_flags):
            raise VariantError(
                f"the loader {self.loader} has no workers, so nothing about them can be asked for"
            )

    @classmethod
    def machine(cls, strategy: str, device: str, count: int, backend: str = "none") -> Variant:
        """Return what stands for a machine's rates: of one rank alone, or between the ranks of DDP."""
        return cls(MACHINE, strategy, device, count, backend, precision="default", loader="none")

    def _choices(self, kind: str) -> tuple[str, ...]:
        """Return the names that may be asked for: the workload's own is never named, so that it has one id."""
        workload = SUBJECTS.get(self.workload)
        return ("", *getattr(workload, kind)[1:]) if workload else ("",)

    @property
    def persistent(self) -> bool:
        """Whether loader workers live through all epochs."""
        return "persistent" in self.loader_flags

    @property
    def prefetch(self) -> int | None:
        """Batches that each loader worker keeps ready; None for torch's default."""
        return next((int(f[len("prefetch") :]) for f in self.loader_flags if f.startswith("prefetch")), None)

    @property
    def pin_memory(self) -> bool | None:
        """Whether batches are put into pinned memory; None for the default, which is yes on a GPU."""
        return False if "unpinned" in self.loader_flags else None

    @property
    def bucket_cap_mb(self) -> int | None:
        """DDP's largest bucket in MB; None to leave it unset."""
        return next((int(k[len("bucket") :]) for k in self.ddp_knobs if _BUCKET.fullmatch(k)), None)

    @property
    def ddp_switches(self) -> tuple[str, ...]:
        """DDP's switches that differ from its defaults."""
        return tuple(knob for knob in self.ddp_knobs if knob in DDP_SWITCHES)

    @property
    def rate_rule(self) -> str:
        """The rule by which the learning rate follows the global batch; "" for none of them."""
        return self.rate[0] if self.rate else ""

    @property
    def rate_warmup(self) -> int:
        """Steps in which the learning rate rises to its value."""
        return int(self.rate[1][len("warm") :]) if len(self.rate) > 1 else 0

    @property
    def ranks_per_node(self) -> int:
        """Processes that train on one node."""
        return self.count if self.strategy == "ddp" else 1

    @property
    def gpus(self) -> int:
        """GPUs that it needs on one node."""
        return self.count if self.device == "cuda" else 0

    @property
    def devices_per_node(self) -> int:
        """Devices that are fed on one node: GPUs, or processes on the CPU."""
        return self.count

    @property
    def least_cores(self) -> int:
        """Cores of one node without which it can't run: one a rank, or those that it is tied to."""
        return max(self.ranks_per_node, (self.cores or 0) * self.devices_per_node)

    @property
    def batch_size(self) -> int:
        """Samples a step on each device."""
        return self.batch or SUBJECTS[self.workload].batch_size

    @property
    def id(self) -> str:
        """The variant's id."""
        unit = "gpu" if self.device == "cuda" else "cpu"
        parts = [self.workload, self.strategy, f"{self.count}{unit}"]
        if self.nodes > 1:
            parts.append(f"{self.nodes}node")
        if self.backend != "none":
            parts.append(self.backend)
        if self.workload == MACHINE:
            return "-".join(parts)
        if self.ddp_knobs:
            parts.append(".".join(self.ddp_knobs))
        parts.append(self.precision)
        loader = self.loader + ("" if self.workers is None else str(self.workers))
        parts.append(".".join((loader, *self.loader_flags)))
        parts += [part for part in (".".join(self.optimizations), self.optimizer, self.schedule) if part]
        if self.rate:
            parts.append(".".join(("lr", *self.rate)))
        if self.batch is not None:
            parts.append(f"b{self.batch}")
        if self.threads is not None:
            parts.append(f"t{self.threads}")
        if self.cores is not None:
            parts.append(f"c{self.cores}")
        if self.mode != "full":
            parts.append(self.mode)
        return "-".join(parts)

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Read an id back.

        Raises
        ------
        VariantError
            If the id names no variant, or names one in other words than its own id, such as ``02gpu`` or ``1node``;
            the message holds the form that was expected.
        """
        machine = _MACHINE_ID.fullmatch(text)
        if machine:
            device = DEVICES[machine["unit"]]
            return cls.machine(
                machine["strategy"], device, int(machine["count"]), machine["backend"] or "none"
            )
        match = _ID.fullmatch(text)
        if match is None:
            raise VariantError(
                f"{text!r} is no variant id; expected WORKLOAD-STRATEGY-<N>gpu|cpu[-<N>node][-BACKEND][-KNOB[.…]]"
                f"-PRECISION-LOADER[<workers>][.FLAG…][-OPTIMIZATION[.…]][-OPTIMIZER][-SCHEDULE][-lr.RULE][-b<batch>][-t<threads>]"
                f"[-c<cores>][-MODE], such as mnist_cnn-ddp-2gpu-nccl-fp32-native8"
            )
        found = match.groupdict()
        variant = cls(
            workload=found["workload"],
            strategy=found["strategy"],
            device=DEVICES[found["unit"]],
            count=int(found["count"]),
            backend=found["backend"] or "none",
            precision=found["precision"],
            loader=found["loader"],
            workers=_number(found["workers"]),
            threads=_number(found["threads"]),
            cores=_number(found["cores"]),
            batch=_number(found["batch"]),
            mode=found["mode"] or "full",
            nodes=1 if found["nodes"] is None else int(found["nodes"]),
            loader_flags=_words(found["flags"]),
            ddp_knobs=_words(found["knobs"]),
            rate=_words(found["rate"]),
            optimizations=_words(found["optimizations"]),
            **_named(found["workload"], (found["names"] or "").split("-")[1:]),
        )
        if variant.id != text:
            # One variant under two names would be measured, and referred to, twice.
            raise VariantError(f"{text!r} is written {variant.id!r}")
        return variant


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(text.strip(".").split(".")) if text else ()


def _named(workload: str, names: list[str]) -> dict[str, str]:
    """Tell which of an id's words is the optimizer and which the schedule; unknown ones are refused by the variant."""
    known = SUBJECTS.get(workload)
    optimizers = known.optimizers if known else ()
    first = names[0] if names and names[0] in optimizers else ""
    rest = names[1:] if first else names
    if len(rest) > 1:
        raise VariantError(f"{rest[0]!r} is no optimizer of {workload}; it has {', '.join(optimizers)}")
    return {"optimizer": first, "schedule": rest[0] if rest else ""}


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _any_of(words: tuple[str, ...]) -> str:
    return "|".join(re.escape(word) for word in words)


_FLAG = re.compile(r"persistent|prefetch[1-9][0-9]{0,2}|unpinned", re.ASCII)
"""How a loader with workers may differ from torch's defaults."""

_BUCKET = re.compile(r"bucket[1-9][0-9]{0,3}", re.ASCII)
"""DDP's largest bucket in MB."""

_RATE = re.compile(r"(?:none|linear|sqrt)(?:\.warm[1-9][0-9]{0,5})?", re.ASCII)
"""How a learning rate follows the batch."""

_ID = re.compile(
    rf"(?P<workload>[a-z][a-z0-9_]*)-(?P<strategy>{_any_of(STRATEGIES)})-(?P<count>[0-9]{{1,6}})(?P<unit>gpu|cpu)"
    rf"(-(?P<nodes>[0-9]{{1,6}})node)?(-(?P<backend>{_any_of(BACKENDS)}))?"
    rf"(-(?P<knobs>(?:{_BUCKET.pattern}|{_any_of(DDP_SWITCHES)})(?:\.[a-z]+[0-9]*)*))?-(?P<precision>{_any_of(PRECISIONS)})"
    rf"-(?P<loader>{_any_of(LOADERS)})(?P<workers>[0-9]{{1,6}})?(?P<flags>(\.[a-z]+[0-9]*)+)?"
    rf"(-(?P<optimizations>(?:{_any_of(OPTIMIZATIONS)})(?:\.[a-z_]+)*))?"
    rf"(?P<names>(-(?!(?:{_any_of(MODES)})(?:-|$))[a-z]{{2,}}(?=-|$)){{1,2}})?"
    rf"(-lr\.(?P<rate>[a-z0-9.]+))?(-b(?P<batch>[0-9]{{1,6}}))?(-t(?P<threads>[0-9]{{1,6}}))?"
    rf"(-c(?P<cores>[0-9]{{1,6}}))?"
    rf"(-(?P<mode>{_any_of(MODES)}))?",
    re.ASCII,
)


_MACHINE_STRATEGIES = ("single", "ddp")

_MACHINE_ID = re.compile(
    rf"{MACHINE}-(?P<strategy>{_any_of(_MACHINE_STRATEGIES)})-(?P<count>[1-9][0-9]{{0,5}})(?P<unit>gpu|cpu)"
    rf"(-(?P<backend>{_any_of(BACKENDS)}))?",
    re.ASCII,
)
"""``machine-single-1gpu``, ``machine-ddp-2gpu-nccl``: nothing is trained, so there is no more to name."""
