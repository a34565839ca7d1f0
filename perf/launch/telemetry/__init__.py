"""What is observed beside a launch, from outside its ranks: GPUs, processes, the cgroup (docs/telemetry.md)."""
