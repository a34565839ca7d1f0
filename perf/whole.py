"""Whole numbers in what other programs print."""

from __future__ import annotations

DIGITS = 18
"""At most: every number of so many fits into 64 bits, and `int` itself refuses texts of more than 4,300 digits."""

NUMBER = f"[0-9]{{1,{DIGITS}}}"
"""The same as a regular expression."""

AMOUNT = rf"{NUMBER}(?:\.{NUMBER})?"
"""A number with or without a fraction, as a regular expression: its float is finite."""


def whole(text: str) -> int | None:
    """Read a whole number in ASCII digits, without a sign; None for any other text.

    Not `str.isdigit`, which is true of "¹", at which `int` raises. Blanks around the number are passed over.
    """
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= DIGITS else None
