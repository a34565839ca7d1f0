"""What tests of several rooms use lies in ``helpers``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
