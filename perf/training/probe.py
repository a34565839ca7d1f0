"""``python -m perf.training.probe``: print one line of JSON that says what this stack is and which GPUs it sees."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import torch

from perf.training.defaults import facts as settings_of
from perf.training.identity import gpu_uuid
from perf.training.stackinfo import stack_info


def visible_gpus() -> list[dict[str, Any]]:
    """Return index, name, UUID and memory of each GPU that torch sees."""
    gpus: list[dict[str, Any]] = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        gpus.append(
            {
                "index": index,
                "name": properties.name,
                "uuid": gpu_uuid(torch.device("cuda", index)),
                "memory_bytes": properties.total_memory,
            }
        )
    return gpus


def main() -> None:
    """Print the facts."""
    facts = {**stack_info(), **settings_of()}
    facts["gpus"] = visible_gpus()
    facts["line_profiler"] = importlib.util.find_spec("line_profiler") is not None
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
