"""The suite: what is asserted (``test_*.py``), how it is launched, judged and reported."""
