"""Component rates of a machine, measured inside the stack under test. One kind of rate a module."""
