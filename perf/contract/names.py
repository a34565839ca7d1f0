"""Names of files, variables and switches that both sides go by."""

from __future__ import annotations

SCHEMA = 1
"""Raised when a field changes its meaning or goes away. A reader refuses a newer schema than its own."""

SPEC_FILE = "spec.json"
RANK_FILE = "rank-{rank}.json"
STACK_FILE = "stack-{rank}.txt"
STATE_FILE = "state-{rank}.json"
PROGRESS_FILE = "progress-{rank}.json"
"""Of a rank whose time is nearly over: ``steps`` so far, and how many were ``taken`` in the last ``seconds``."""

MODEL_FILE = "model.pt"
TRACE_FILE = "trace-rank-{rank}.json.gz"
NSYS_FILE = "trace.nsys-rep"
"""What Nsight Systems leaves: one file a launch, with all ranks of a node."""

EDGE_PIPE = "edges.pipe"
"""A named pipe in the launch's folder: each rank writes one line when a window of its begins or ends, so that whoever
samples the machine reads cumulative counters there. Where there is none, nobody listens."""

STARTED = "STACKPROOF_STARTED"
"""Variable of a launch's processes: when it was started, by the system's steady clock (``time.monotonic``)."""

UNAVAILABLE = "unavailable"
"""Phase in a rank's state file: this stack or device lacks what was asked for; the file's ``reason`` says what."""

OPTIMIZATIONS = ("channels_last", "non_blocking", "fused", "compile", "cuda_graph", "autotune")
"""Switches of a launch, in the order in which they are written."""

FEWEST_STEPS = 50
"""Steps of the shortest window on a GPU, as the design has it: its halves still have a median of 25 steps each, of
22 where an epoch's end cuts it off (`SPARED`)."""

SPARED = 10
"""Where an epoch's end cuts off a window that has a limit in seconds, one step in so many may be lacking, if a loader's
new start would cost more steps than that."""

PREFETCH_ROUNDS = 2
"""After a loader's start, batches come from a filling queue for workers x prefetch steps; twice that is thrown away."""

FEWEST_WARM_UP = 10
"""Steps of the shortest warm-up, where so many last `LaunchSpec.warmup_seconds`: memory and methods are chosen in the
first ones. At 80 ms a step each one costs a window more than it steadies."""

FEWEST_WITH_CAPTURE = 20
"""Steps of the shortest warm-up in which a CUDA graph is captured."""

DDP_SWITCHES = ("view", "static", "nobuffers", "nosync")
"""Switches of DistributedDataParallel, in the order in which they are written, behind ``bucket<MB>``."""
