"""Runs of months beside each other: ``python -m perf.report history``."""
