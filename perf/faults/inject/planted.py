"""The faults themselves: each changes torch or Python in the process that it is called in."""

from __future__ import annotations

import planted_gpus
import planted_ranks
import planted_ways
from planting import Plant

PLANTS: dict[str, Plant] = {**planted_ways.PLANTS, **planted_gpus.PLANTS, **planted_ranks.PLANTS}
