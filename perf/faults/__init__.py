"""Planted faults: what the suite must catch and name. Only through ``--plant NAME``, never in a normal run.

A fault acts in the stack under test (its environment, a module that Python loads first), outside the code that detects
it; and nothing that detects reads its name.
"""
