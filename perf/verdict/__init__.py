"""Pure statistics of stackproof: from launch medians to a verdict. No I/O, no torch."""
