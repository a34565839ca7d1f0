"""The faults themselves: each changes torch or Python in the process that it is called in."""

from __future__ import annotations

from perf.faults.inject import planted_gpus, planted_ranks, planted_ways
from perf.faults.inject.planting import Plant

PLANTS: dict[str, Plant] = {**planted_ways.PLANTS, **planted_gpus.PLANTS, **planted_ranks.PLANTS}
