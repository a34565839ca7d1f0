"""The catalogue: each fault, what must catch it and the words that must name it. Data; planting is `perf.faults.plant`.

`docs/trust.md` and the self-check take their table from here.
"""

from __future__ import annotations

from perf.faults.fault import INVALID, KINDS, LAUNCH, Fault
from perf.faults.on_cpu import ON_CPU
from perf.faults.on_gpu import ON_GPU

__all__ = ["FAULTS", "INVALID", "KINDS", "LAUNCH", "Fault"]

FAULTS: dict[str, Fault] = {
    fault.name: fault for fault in sorted((*ON_CPU, *ON_GPU), key=lambda fault: KINDS.index(fault.kind))
}
