"""``python -m perf.faults.selfcheck``: plants every fault that the machine carries, and judges clean launches between."""
