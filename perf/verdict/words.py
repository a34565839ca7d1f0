"""How numbers are written in the sentences of a judgement."""

from __future__ import annotations

import math

__all__ = ["change", "percent", "points", "rounded"]


def percent(fraction: float) -> str:
    """Write a fraction as a percentage: 0.0312 becomes '3.1 %'; two digits after the point below 1 %."""
    if not math.isfinite(fraction):
        return "an unknown share" if math.isnan(fraction) else "more than can be said"
    value = 100.0 * fraction
    return f"{value:.1f} %" if abs(value) >= 0.995 else f"{value:.2f} %"


def points(share: float) -> str:
    """Write a difference of shares in points: 0.01 becomes '1.0 points'."""
    return percent(share).replace(" %", " points")


def rounded(value: float) -> str:
    """Write samples a second: four digits below 1,000 and whole ones from there on, never with an exponent."""
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"


def change(log_ratio: float) -> float:
    """Turn a difference of logarithms into a relative change: log(1.02) becomes 0.02."""
    return math.expm1(log_ratio)
