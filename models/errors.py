"""The one error that everything about training data is derived from."""

from __future__ import annotations


class DataError(ValueError):
    """Training data can't be used. The message names the place, what was found, what was expected and what to do."""
