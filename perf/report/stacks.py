"""Which stacks and which machine a run used, in words. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from perf.report.text import memory

__all__ = ["data_line", "environment_lines", "stack_key", "stack_labels"]

# What makes two stacks different; the rest of a stack's facts (its NumPy, say) does not.
_STACK_FACTS = ("name", "python", "torch", "torch_path", "torchvision", "cuda", "hip", "cudnn", "nccl")

# What the header says of a stack, in this order. Its paths and all else are in environment.json.
_STACK_HEADER = ("name", "torch", "cuda", "hip", "cudnn", "nccl", "torchvision", "python")


def stack_key(stack: Mapping[str, Any]) -> str:
    """Return a text that is equal for launches of the same stack."""
    return json.dumps([stack.get(fact) for fact in _STACK_FACTS], sort_keys=True, default=str)


def stack_labels(stacks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Name each of a run's stacks by `stack_key`: as briefly as still tells them apart."""
    different = {stack_key(stack): stack for stack in stacks}
    for facts in (("name",), ("torch",), ("torch", "torch_path"), _STACK_FACTS):
        labels = {key: _words(stack, facts) for key, stack in different.items()}
        if all(labels.values()) and len(set(labels.values())) == len(labels):
            return labels
    return {key: f"stack {place}" for place, key in enumerate(different, start=1)}


def environment_lines(environment: Mapping[str, Any]) -> list[str]:
    """Say where a run was made: a line each for system, CPU, GPUs, stack, host, data, suite, as far as they are known.

    Parameters
    ----------
    environment
        The content of ``environment.json``. What is null or absent is unknown and left out; so is all that nobody
        needs before reading a number.

    Returns
    -------
    list of str
        Lines such as ``'stack   torch 2.6.0, cuda 12.4'``; not cleaned for a terminal.
    """
    stack = environment.get("stack")
    named = _only(stack, _STACK_HEADER) if isinstance(stack, Mapping) else stack
    found = {
        "system": _joined(environment, ("system", "kernel", "machine", "distribution")),
        "cpu": _cpu(environment),
        "gpus": _gpus(stack.get("gpus")) if isinstance(stack, Mapping) else "",
        "stack": _value(named),
        "host": _value(environment.get("host")),
        "data": _value(environment.get("data")),
        "suite": _value(environment.get("suite")),
    }
    width = max(len(key) for key in found)
    return [f"{key:<{width}}  {written}" for key, written in found.items() if written]


def data_line(workload: str, data: Mapping[str, Any]) -> str:
    """Say in one line which data a workload was trained on, for the header of a report; '' if nothing is known."""
    written = (
        _value(_only(data, ("description", "samples", "folder"))) if "description" in data else _value(data)
    )
    written = written.removeprefix("description ")
    return f"data    {workload}: {written}" if written else ""


def _only(facts: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: facts[name] for name in names if facts.get(name) is not None}


def _joined(environment: Mapping[str, Any], names: Iterable[str]) -> str:
    return ", ".join(filter(None, (_value(environment.get(name)) for name in names)))


def _cpu(environment: Mapping[str, Any]) -> str:
    parts = [_value(environment.get("cpu_model"))]
    cores, allowed = environment.get("cores"), environment.get("cores_allowed")
    if isinstance(cores, int) and isinstance(allowed, int):
        parts.append(f"{allowed} of {cores} cores allowed")
    size = environment.get("memory_bytes")
    if isinstance(size, int):
        parts.append(memory(size))
    return ", ".join(filter(None, parts))


def _gpus(gpus: Any) -> str:
    """Count equal GPUs: '4 × NVIDIA H100 80GB HBM3 (79.11 GiB)'."""
    if not isinstance(gpus, list):
        return ""
    kinds: Counter[str] = Counter()
    for gpu in gpus:
        name, size = (gpu.get("name"), gpu.get("memory_bytes")) if isinstance(gpu, Mapping) else (gpu, None)
        kinds[f"{name} ({memory(size)})" if isinstance(size, int) else str(name)] += 1
    return ", ".join(f"{count} × {kind}" for kind, count in kinds.items())


def _words(stack: Mapping[str, Any], facts: Iterable[str]) -> str:
    parts = []
    for fact in facts:
        value = stack.get(fact)
        if value is not None:
            parts.append(
                str(value) if fact == "name" else f"at {value}" if fact == "torch_path" else f"{fact} {value}"
            )
    return " ".join(parts)


def _value(value: Any) -> str:
    """Write a value of the environment in one line: 'torch 2.6.0, cuda 12.4'."""
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        pairs = [(str(key), _value(item)) for key, item in value.items()]
        return ", ".join(f"{key} {item}" for key, item in pairs if item)
    if isinstance(value, (list, tuple)):
        return ", ".join(item for item in map(_value, value) if item)
    return str(value)
