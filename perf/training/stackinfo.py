"""What the stack under test consists of, as the worker sees it."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy
import torch
import torchvision


def stack_info() -> dict[str, Any]:
    """Return versions and origin of the stack's parts; null where a part is absent."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_path": os.path.dirname(torch.__file__),
        "torchvision": torchvision.__version__,
        "numpy": numpy.__version__,
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
        "nccl": nccl_version(),
        "gloo": torch.distributed.is_available() and torch.distributed.is_gloo_available(),
    }


def nccl_version() -> Any:
    """Return NCCL's version as text, or None where the stack has none."""
    if not (torch.distributed.is_available() and torch.distributed.is_nccl_available()):
        return None
    try:
        version = torch.cuda.nccl.version()
    except (AttributeError, RuntimeError):
        # A CPU build of torch says NCCL is available and has no version function.
        return None
    return ".".join(str(part) for part in version) if isinstance(version, tuple) else str(version)
