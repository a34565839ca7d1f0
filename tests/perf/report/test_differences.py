"""What differs between two stacks."""

from __future__ import annotations

from perf.report.differences import setting_differences, stack_differences


def test_versions_and_defaults_that_differ_are_named_by_path():
    """What is the same, and how a stack was found, is left out; what one lacks is shown as absent."""
    old = {
        "torch": "2.9.1",
        "cuda": None,
        "defaults": {"ddp.bucket_cap_mb": 25},
        "passed_over": ["x"],
        "line_profiler": True,
        "gpus": [],
    }
    new = {"torch": "2.14.1", "cuda": None, "defaults": {"ddp.bucket_cap_mb": None, "new": True}, "gpus": [1]}
    assert [
        ("torch", "2.9.1", "2.14.1"),
        ("defaults.ddp.bucket_cap_mb", "25", "null"),
        ("defaults.new", "–", "True"),
    ] == stack_differences(old, new)


def test_measurements_are_no_settings():
    """The error of a product differs from launch to launch."""
    old, new = (
        {"product_error": {"matmul": e}, "tf32": {"matmul": t}} for e, t in ((1e-7, False), (3e-4, True))
    )
    assert [("tf32.matmul", "False", "True")] == setting_differences(old, new)
