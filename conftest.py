"""Options, markers and fixtures of the suite. What they do is in ``perf/suite``."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - whoever has an older one gets this sentence
    sys.exit(
        f"stackproof's driver needs Python 3.11 or newer, this is {sys.version.split()[0]}. "
        "The stack under test may be older: name its Python with --stack."
    )

pytest_plugins = ["perf.suite.plugin", "perf.suite.collected", "perf.suite.fixtures"]
