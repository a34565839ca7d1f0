"""``python -m perf.training.worker SPEC.json``: one rank of one launch.

Run alone it is rank 0 of 1; under torchrun it is the rank that torchrun's variables name. It trains what the spec
says, measures it, and leaves one rank record in the spec's folder. Exit status 0: the record is written. 2: the spec
can't be used. 3: a setting was asked for and is not in force. 4: this stack or device lacks something that was asked
for; the reason is in the rank's state file. 1: anything else, with a traceback in the log.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path
from typing import Optional

_STARTED = time.perf_counter()

# Imports make a million objects and next to no garbage: not looking for it saves a tenth of their time.
gc.disable()

import torch  # noqa: E402 - the time that the imports take is measured
import torchvision  # noqa: E402, F401 - part of the stack's start-up, whichever workload follows

from models.interface import Workload, load_workload  # noqa: E402
from perf import contract  # noqa: E402
from perf.training.binding import bind, tie  # noqa: E402
from perf.training.feed import feeds_early, open_feed  # noqa: E402
from perf.training.identity import (  # noqa: E402
    gpu_uuid,
    identify,
    seconds_since_launch,
    seconds_since_process_start,
    take,
)
from perf.training.learning_rate import RULES  # noqa: E402
from perf.training.optimizations import end_compilers  # noqa: E402
from perf.training.rates.card import measure_card  # noqa: E402
from perf.training.session import Session  # noqa: E402
from perf.training.settings import NotInForce, Unavailable, apply_precision, apply_threads  # noqa: E402
from perf.training.state import State  # noqa: E402
from perf.training.strategies import join, leave  # noqa: E402

# Nor is it looked through later: a full collection of it takes 0.3 s, which in a window would be a stall of Python's.
gc.freeze()
gc.enable()

_IMPORTED = time.perf_counter()

forked_at: Optional[float] = None
"""When this process was forked from one that had imported everything (``perf.training.server``); None if it was not."""

BAD_SPEC = 2
NOT_IN_FORCE = 3
NOT_AVAILABLE = 4

KNOWN_WORDS = {
    "strategy": ("single", "dp", "ddp"),
    "device": ("cpu", "cuda"),
    "mode": ("full", "synthetic", "io"),
    "plan": ("window", "epochs", "solution", "audit", "rates"),
    "rate_rule": RULES,
    "trace": ("", "torch", "nsys"),
}
"""What this worker can do. Precision and loader are settings: asking for an unknown one ends with status 3."""


def main(arguments: list[str]) -> int:
    """Run one rank and return its exit status."""
    if len(arguments) != 1:
        print("usage: python -m perf.training.worker SPEC.json", file=sys.stderr)
        return BAD_SPEC
    path = Path(arguments[0])
    try:
        spec = contract.decode(contract.LaunchSpec, path.read_bytes(), str(path))
        check_words(spec, str(path))
        # Rates are a machine's: nothing is trained.
        workload = None if spec.plan == "rates" else load_workload(spec.workload)
    except (OSError, ValueError) as error:
        print(f"stackproof worker: the launch spec can't be used: {error}", file=sys.stderr)
        return BAD_SPEC
    state = State(spec.out_dir, int(os.environ.get("RANK", "0")))
    state.enter("setup")
    state.watch(spec.time_limit_seconds, seconds_since_launch(os.environ, spec.time_limit_seconds))
    try:
        run(spec, workload, state)
    except NotInForce as error:
        print(f"stackproof worker: a setting was asked for and is not in force: {error}", file=sys.stderr)
        return NOT_IN_FORCE
    except Unavailable as reason:
        print(f"stackproof worker: not available here: {reason}", file=sys.stderr)
        state.unavailable(str(reason))
        return NOT_AVAILABLE
    state.done()
    end_compilers()
    # As it ends, the interpreter looks for garbage once more, through all that training left; the process ends anyway.
    gc.freeze()
    return 0


def check_words(spec: contract.LaunchSpec, where: str) -> None:
    """Raise ContractError where the spec has a word that would silently be taken for another."""
    for key, known in KNOWN_WORDS.items():
        found = getattr(spec, key)
        if found not in known:
            raise contract.ContractError(
                f"{where}: $.{key} must be one of {', '.join(known)}, found {found!r:.80}"
            )


def start_up() -> dict[str, float]:
    """Return the seconds of this process's start until now: its own imports, or the fork that spared them."""
    if forked_at is not None:
        return {"fork": time.perf_counter() - forked_at}
    startup = {"imports": _IMPORTED - _STARTED}
    since_start = seconds_since_process_start()
    if since_start is not None:
        startup["interpreter"] = max(0.0, since_start - (time.perf_counter() - _STARTED))
    return startup


def run(spec: contract.LaunchSpec, workload: Optional[Workload], state: State) -> None:
    """Train as the spec says, or measure the machine where there is no workload, and write the rank record."""
    startup = start_up()
    apply_threads(spec.threads)
    apply_precision(spec.precision)
    before = time.perf_counter()
    identity = identify(spec.device, spec.devices_per_rank, os.environ)
    # Counting GPUs asks the driver already.
    startup["devices"] = time.perf_counter() - before
    if identity.world_size != spec.world_size:
        raise NotInForce(f"the spec asks for {spec.world_size} ranks, torchrun started {identity.world_size}")
    # Before the loader's workers, which run where their rank does.
    binding = tie(spec, identity) if spec.tied_cores else None
    torch.manual_seed(spec.seed)
    feed = None
    if workload is not None and feeds_early(spec, identity):
        state.enter("feed")
        before = time.perf_counter()
        feed = open_feed(spec, identity, workload)
        startup["data"] = time.perf_counter() - before
    state.enter("devices")
    before = time.perf_counter()
    take(identity.devices)
    # Ranks that take theirs beside each other wait for the driver in turn.
    startup["devices"] += time.perf_counter() - before
    state.takes([gpu_uuid(device) or str(device) for device in identity.devices if device.type == "cuda"])
    # Before the process group: that is where a rank with a broken card or network hangs.
    state.enter("devices")
    if spec.numa and not spec.tied_cores:
        binding = bind(spec, identity)
    before = time.perf_counter()
    if spec.strategy == "ddp":
        join(spec.backend, identity, spec.time_limit_seconds)
    startup["process_group"] = time.perf_counter() - before
    if workload is None:
        record = measure_card(spec, identity, state, startup)
    else:
        record = Session(spec, identity, workload, state, startup, binding, feed).run()
    state.enter("record")
    path = os.path.join(spec.out_dir, contract.RANK_FILE.format(rank=identity.rank))
    contract.write_whole(path, contract.encode(record))
    leave()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
