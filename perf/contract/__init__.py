"""What the driver and the worker say to each other: launch spec, rank record, launch record.

The driver writes one launch spec; each rank writes one rank record; the driver merges the rank records of a
launch into one launch record. All three are JSON objects in files, written whole and moved into place.

These modules are imported by both sides, so they import nothing but the standard library and keep to Python 3.9.
"""

from __future__ import annotations

from perf.contract.launch import LaunchRecord
from perf.contract.measured import EpochRecord, Operator, RankRecord, Rate
from perf.contract.names import (
    DDP_SWITCHES,
    EDGE_PIPE,
    FEWEST_STEPS,
    FEWEST_WARM_UP,
    FEWEST_WITH_CAPTURE,
    MODEL_FILE,
    NSYS_FILE,
    OPTIMIZATIONS,
    PREFETCH_ROUNDS,
    PROGRESS_FILE,
    RANK_FILE,
    SCHEMA,
    SPARED,
    SPEC_FILE,
    STACK_FILE,
    STARTED,
    STATE_FILE,
    TRACE_FILE,
    UNAVAILABLE,
)
from perf.contract.spec import LaunchSpec
from perf.contract.text import ContractError, decode, encode, write_whole

__all__ = [
    "DDP_SWITCHES",
    "EDGE_PIPE",
    "FEWEST_STEPS",
    "FEWEST_WARM_UP",
    "FEWEST_WITH_CAPTURE",
    "MODEL_FILE",
    "NSYS_FILE",
    "OPTIMIZATIONS",
    "PREFETCH_ROUNDS",
    "PROGRESS_FILE",
    "RANK_FILE",
    "SCHEMA",
    "SPARED",
    "SPEC_FILE",
    "STACK_FILE",
    "STARTED",
    "STATE_FILE",
    "TRACE_FILE",
    "UNAVAILABLE",
    "ContractError",
    "EpochRecord",
    "LaunchRecord",
    "LaunchSpec",
    "Operator",
    "RankRecord",
    "Rate",
    "decode",
    "encode",
    "write_whole",
]
