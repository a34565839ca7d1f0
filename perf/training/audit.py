"""Which samples a loader delivers, counted from what it delivered: plan ``audit``."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable
from typing import Any, Optional

import numpy

from perf.training.meter import Meter


def drain_indexed(
    train_loader: Iterable[Any], meter: Meter, indices: list[int], batches: Optional[int]
) -> bool:
    """Take batches of indices and keep them in order; stop after `batches` where that is a number."""
    for taken, batch in enumerate(train_loader, start=1):
        indices.extend(batch.tolist())
        if meter.step(None, batch):
            return False
        if batches is not None and taken == batches:
            return False
    return True


def audit_facts(indices: list[int], data_samples: int, prefix: int) -> dict[str, Any]:
    """Return what an epoch delivered: number of different samples, digest of the first `prefix` indices, their set.

    Parameters
    ----------
    indices
        Sample indices in the order of delivery.
    data_samples
        Size of the data set; an index outside it is an error.
    prefix
        How many indices the digest covers, so that a whole epoch can be held against one that was cut.
    """
    delivered = numpy.asarray(indices, dtype="<i8")
    if len(delivered) and not 0 <= delivered.min() <= delivered.max() < data_samples:
        raise IndexError(f"the loader delivered an index outside 0..{data_samples - 1}")
    bits = numpy.zeros(data_samples, dtype=numpy.uint8)
    bits[delivered] = 1
    packed = numpy.packbits(bits, bitorder="little").tobytes()
    return {
        "distinct": int(bits.sum()),
        "order": hashlib.sha256(delivered[:prefix].tobytes()).hexdigest()[:32],
        "seen": base64.b64encode(zlib.compress(packed, 9)).decode("ascii"),
    }
