"""Two stacks, or several in order, from the command line: ``python -m perf.comparing``."""
