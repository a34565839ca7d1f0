"""A worker that does as FAKE_BEHAVIOURS says, rank by rank, and keeps to the worker's side of the contract."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from perf import contract
from perf.training.dumping import StackDump

# A frame with the name of torch's own file, as a rank has it that waits in a barrier.
BARRIER = compile(
    "import time\ndef barrier():\n    time.sleep(600)\n",
    "/stack/site-packages/torch/distributed/distributed_c10d.py",
    "exec",
)


class Rank:
    def __init__(self, spec_path):
        self.spec = contract.decode(contract.LaunchSpec, Path(spec_path).read_bytes(), spec_path)
        self.rank = int(os.environ.get("RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.out = Path(self.spec.out_dir)
        self.stack = (self.out / contract.STACK_FILE.format(rank=self.rank)).open("w")
        faulthandler.enable(self.stack)
        # Far below the time limit, whatever that is: the tests should not wait.
        StackDump(
            self.stack, min(1.0, 0.9 * self.spec.time_limit_seconds), 0.05 * self.spec.time_limit_seconds
        )

    def enter(self, phase):
        state = json.dumps({"phase": phase, "time": time.time()})
        contract.write_whole(str(self.out / contract.STATE_FILE.format(rank=self.rank)), state)

    def wait_for_all(self):
        """Wait until every rank runs, so that none is ended with the rest before it began."""
        paths = [self.out / contract.STATE_FILE.format(rank=rank) for rank in range(self.world_size)]
        end = time.monotonic() + 60.0
        while not all(path.exists() for path in paths) and time.monotonic() < end:
            time.sleep(0.02)

    def record(self, **changes):
        fields = {
            "run": self.spec.run,
            "launch": self.spec.launch,
            "variant": self.spec.variant,
            "rank": self.rank,
            "world_size": self.world_size,
            "local_rank": int(os.environ.get("LOCAL_RANK", "0")),
            "host": "here",
            "pid": os.getpid(),
            "started_at": time.time(),
            "device_names": ["cpu"],
            "gpu_uuids": [],
            "stack": {},
            "data": {},
            "warmup_steps": 0,
            "step_seconds": [0.01, 0.01, 0.01, 0.01],
            "window_seconds": 0.04,
            "window_samples": 256,
            "wait_seconds": 0.0,
            "halves": [0.01, 0.01],
            "total_steps": 4,
            "loss_first": 2.0,
            "loss_last": 1.0,
            "losses_finite": True,
            "first_step_seconds": 0.01,
            "epochs": [],
            "parameters": 1,
            "parameters_digest": None,
            "peak_memory_bytes": {},
            "reserved_memory_bytes": {},
            "allocator_retries": {},
            "effective": {"omp_num_threads": os.environ.get("OMP_NUM_THREADS")},
            "threads": {"cores_allowed": 4},
            "startup_seconds": {},
            "telemetry": {},
        }
        return contract.RankRecord(**{**fields, **changes})

    def write(self, text):
        contract.write_whole(str(self.out / contract.RANK_FILE.format(rank=self.rank)), text)

    # The behaviours.

    def ok(self):
        self.write(contract.encode(self.record()))
        self.enter("done")

    def barrier(self):
        space = {}
        exec(BARRIER, space)
        space["barrier"]()

    def hang(self):
        time.sleep(600)

    def stop(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    def raise_error(self):
        raise RuntimeError("the \x1b[31mred\x1b[0m loader broke")

    def status_3(self):
        print("told to leave with 3", flush=True)
        sys.exit(3)

    def unavailable(self):
        """Say, as the worker does, that this stack lacks what was asked for."""
        state = {
            "phase": contract.UNAVAILABLE,
            "time": time.time(),
            "reason": "fused: no \x1b[31msuch\x1b[0m form",
        }
        contract.write_whole(str(self.out / contract.STATE_FILE.format(rank=self.rank)), json.dumps(state))
        sys.exit(4)

    def silent(self):
        os._exit(0)

    def half(self):
        text = contract.encode(self.record())
        self.write(text[: len(text) // 2])

    def other(self):
        self.write(contract.encode(self.record(launch="9999")))

    def killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def segfault(self):
        # No core file in the repository.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.SIGSEGV)

    def kill_agent(self):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)

    def stubborn(self):
        """Ignore SIGTERM, and leave a child in a session of its own that ignores it too."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        time.sleep(600)

    def leave_child(self):
        """End well, and leave a process behind."""
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        self.ok()


if __name__ == "__main__":
    this = Rank(sys.argv[1])
    this.enter("warm-up")
    this.wait_for_all()
    getattr(this, json.loads(os.environ["FAKE_BEHAVIOURS"])[this.rank])()
