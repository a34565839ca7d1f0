"""Keeps runs as the folders here do: ``python docs/measurements/pack.py DIR RUN [RUN …]``.

Of each run the launches and verdicts, of the first one the environment. Step times are rounded to 1e-7 s, operators cut
to the 30 with the most time, and paths of the machine replaced: the home folder, the stack's and the suite's.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DIGITS = 7
OPERATORS = 30


def shortened(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a launch record with what is kept of it. Pure."""
    found = dict(record)
    found["step_seconds"] = [[round(step, DIGITS) for step in rank] for rank in record["step_seconds"]]
    found["operators"] = [
        dict(
            sorted(rank.items(), key=lambda item: -max(item[1]["device_seconds"], item[1]["host_seconds"]))[
                :OPERATORS
            ]
        )
        for rank in record.get("operators") or []
    ]
    return found


def replaced(text: str, paths: Mapping[str, str]) -> str:
    """Return a text with paths replaced, the longest first. Pure."""
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, paths[path])
    return text


def paths_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what stands for the paths that a run's environment names. Pure."""
    found = {}
    for side in ("stack", "against"):
        name = str((environment.get(side) or {}).get("torch_path") or "")
        prefix = name.partition("/lib/python")[0]
        if prefix:
            found[prefix] = "/stack"
    options = environment.get("options") or {}
    home = str(options.get("cache_dir") or "").partition("/.cache/")[0]
    if home:
        found[home + "/"] = "~/"
    results, references = str(options.get("results") or ""), str(options.get("references") or "")
    if results:
        found[results] = "results"
    root = references.partition("/perf/references")[0]
    if root:
        found[root] = "."
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Pack runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="DIR")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    records: list[str] = []
    verdicts: list[str] = []
    for place, run in enumerate(options.runs):
        environment = json.loads((run / "environment.json").read_text(encoding="utf-8"))
        paths = paths_of(environment)
        for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines():
            short = json.dumps(shortened(json.loads(line)), separators=(",", ":"), ensure_ascii=False)
            records.append(replaced(short, paths))
        judged = run / "verdicts.jsonl"
        if judged.exists():
            verdicts += [replaced(line, paths) for line in judged.read_text(encoding="utf-8").splitlines()]
        if place == 0:
            text = json.dumps(environment, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
            (options.out / "environment.json").write_text(replaced(text, paths), encoding="utf-8")
    for name, lines in (("records.jsonl", records), ("verdicts.jsonl", verdicts)):
        if lines:
            (options.out / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{options.out}: {len(records)} launches, {len(verdicts)} verdicts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
