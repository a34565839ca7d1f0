"""``python -m perf.faults.selfcheck``: plants every fault that the machine carries, with clean judgements between."""
