"""The options of a run: read from the command line, checked, and what follows from them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perf.catalogue import COMPARING
from perf.faults.plant import NoSuchFault, check_name
from perf.machine import REPOSITORY
from perf.profiles import PROFILES, Profile

if TYPE_CHECKING:
    from perf.cluster.sites import Site

DEFAULT_PROFILE = "quick"
EXTRAS = ("line-profile", "phases", "torch-trace", "nsys")


@dataclass(frozen=True)
class Options:
    """The options of one run, as plain values."""

    profile: str
    stack: str | None
    device: str
    data_root: str | None
    cache_dir: str
    results: Path
    records: tuple[Path, ...]
    require_references: bool
    share_node: bool
    extras: tuple[str, ...]
    launch_timeout: float | None
    launches: int | None = None
    save_model: bool = False
    references: Path = REPOSITORY / "perf" / "references"
    confirms: Path | None = None
    against: str | None = None
    margin: float | None = None
    launcher: str = ""
    old_launcher: str = ""
    server_launches: int = 0
    stalls: bool = False
    portable_floors: bool = False
    site: Site | None = None
    job_folder: Path | None = None
    plant: str | None = None
    small: bool = False
    why: bool = False
    budget: float | None = None
    plan: bool = False

    def launcher_on(self, device: str) -> str:
        """Return how launches on ``cpu`` or ``cuda`` are started: as asked for, else as was shown to be worth as much.

        On H200s forks of several servers trained as fast as fresh launches to 0.3 %; on CPUs that is too fine to be
        shown (docs/launching.md). Two stacks are compared in how long they take to start, too, which a fork is spared.
        """
        forked = device == "cuda" and self.profile not in COMPARING
        return self.launcher or ("fork" if forked else "fresh")

    @property
    def sized_profile(self) -> Profile:
        """The profile, with launches and windows as were asked for."""
        profile = PROFILES[self.profile]
        if self.small:
            smoke = PROFILES["smoke"]
            profile = dataclasses.replace(profile, sizes=smoke.sizes, one_thread=smoke.one_thread)
        if self.stalls:
            profile = profile.with_stalls()
        return profile if self.launches is None else profile.with_launches(self.launches)


def default_cache_dir(environ: dict[str, str]) -> str:
    """Return where generated data lie: the user's cache folder."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "stackproof")


def read_options(config: pytest.Config) -> Options:
    """Return the options of a run.

    Raises
    ------
    pytest.UsageError
        If a value can't be used.
    """
    option: Any = config.option
    _refuse_empty(option)
    _refuse_no_folders(option)
    timeout = option.launch_timeout
    if timeout is not None and not 0 < timeout < math.inf:
        raise pytest.UsageError(f"--launch-timeout {timeout:g} is no time limit; give seconds above 0")
    if option.launches is not None and option.launches < 1:
        raise pytest.UsageError(f"--launches {option.launches} measures nothing; give 1 or more")
    # `latest` is about to point at this run.
    records = tuple(Path(text).resolve() for text in option.records)
    for folder in records:
        if not (folder / "records.jsonl").is_file():
            raise pytest.UsageError(
                f"--records {folder} holds no records.jsonl; name the folder of a run, such as results/latest"
            )
    confirms = Path(option.confirms).resolve() if option.confirms else None
    if confirms and not (confirms / "records.jsonl").is_file():
        raise pytest.UsageError(f"--confirms {confirms} holds no records.jsonl; name the folder of a run")
    references = Path(option.references).absolute() if option.references else Options.references
    if not references.is_dir():
        raise pytest.UsageError(f"--references {references} is no folder")
    if option.profile in COMPARING and not (option.against or records):
        raise pytest.UsageError(
            f"--profile {option.profile} compares two stacks: name the old one with --against"
        )
    if option.against and option.profile not in (None, *COMPARING):
        raise pytest.UsageError(f"--against belongs to the profiles {', '.join(COMPARING)}")
    profile = (
        option.profile
        or (COMPARING[0] if option.against else None)
        or (_profile_of(records[0]) if records else None)
        or DEFAULT_PROFILE
    )
    site = _site_of(option.site)
    data_root = option.data_root or (site.data.root if site else "")
    cache_dir = option.cache_dir or (site.data.cache if site else "") or default_cache_dir(dict(os.environ))
    return Options(
        profile=profile,
        stack=_stack_of(site, option.stack),
        device=option.device or ("cpu" if profile == "smoke" else "auto"),
        data_root=os.path.abspath(data_root) if data_root else None,
        cache_dir=os.path.abspath(cache_dir),
        results=Path(option.results).absolute(),
        records=records,
        require_references=option.require_references,
        share_node=option.share_node,
        extras=tuple(extra for extra in EXTRAS if getattr(option, extra.replace("-", "_"))),
        launch_timeout=timeout,
        launches=option.launches,
        save_model=option.save_model,
        portable_floors=option.portable_floors,
        references=references,
        confirms=confirms,
        against=option.against,
        margin=_margin(option.margin, profile),
        launcher=option.launcher,
        old_launcher=_with_against(option.old_launcher, option.against),
        server_launches=_server_launches(option.server_launches, option.launcher),
        plant=_plant(option.plant, records),
        small=option.small,
        stalls=_stalls(option.stalls, profile),
        why=option.why,
        budget=_budget(option.budget),
        plan=_planned(option.plan, records),
        site=site,
        job_folder=Path(option.job_folder).absolute() if option.job_folder else None,
    )


FILLED = ("against", "cache_dir", "confirms", "data_root", "job_folder", "references", "results", "site")
"""Options whose value is a name or a path."""


def _refuse_empty(option: Any) -> None:
    """Refuse an option that was given without a value, as a shell's unset variable does: it would go unseen."""
    for name in FILLED:
        if getattr(option, name) == "":
            raise pytest.UsageError(
                f"--{name.replace('_', '-')} is empty, as an unset variable leaves it; give a value or leave it out"
            )


def _refuse_no_folders(option: Any) -> None:
    """Refuse folders that can be none, before a worker finds that out."""
    if option.data_root and not os.path.isdir(option.data_root):
        raise pytest.UsageError(
            f"--data-root {option.data_root} is no folder; leave it out for generated data"
        )
    if option.cache_dir and os.path.lexists(option.cache_dir) and not os.path.isdir(option.cache_dir):
        raise pytest.UsageError(f"--cache-dir {option.cache_dir} is no folder")


def _with_against(launcher: str, against: str | None) -> str:
    """Refuse a launcher for a side that there is not."""
    if launcher and not against:
        raise pytest.UsageError("--old-launcher is of a comparison's old side: give --against=PYTHON too")
    return launcher


def _stalls(asked: bool, profile: str) -> bool:
    """Refuse long windows where no share of slow steps is judged."""
    if asked and profile not in COMPARING:
        raise pytest.UsageError(
            f"--stalls belongs to the profiles {', '.join(COMPARING)}: it compares shares of slow steps"
        )
    return asked


def _planned(asked: bool, records: tuple[Path, ...]) -> bool:
    """Refuse to plan what is there already."""
    if asked and records:
        raise pytest.UsageError("--plan plans launches; with --records none are made")
    return asked


def _server_launches(number: int, launcher: str) -> int:
    """Refuse a number that would be ignored."""
    if number < 0 or (number and launcher != "fork"):
        raise pytest.UsageError(
            f"--server-launches={number}: expected 1 or more, with --launcher=fork; 0 is no limit"
        )
    return number


def _margin(text: str | None, profile: str) -> float | None:
    """Read ``2%``; refuse it where nothing is compared."""
    if text is None:
        return None
    if profile not in COMPARING:
        raise pytest.UsageError("--margin is of a comparison: give --against=PYTHON too")
    try:
        margin = float(text.removesuffix("%")) / 100.0
    except ValueError:
        margin = 0.0
    if not 0.0 < margin < 1.0:
        raise pytest.UsageError(f"--margin {text} is no percentage such as 2%")
    return margin


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def _budget(text: str | None) -> float | None:
    """Read ``20min`` as seconds."""
    if text is None:
        return None
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0.0 < seconds < float("inf"):
        raise pytest.UsageError(f"--budget {text} is no time such as 90s, 20min or 2h")
    return seconds


def _site_of(path: str | None) -> Site | None:
    if path is None:
        return None
    from perf.cluster.sites import SiteError, load_site

    try:
        return load_site(path)
    except SiteError as error:
        raise pytest.UsageError(str(error)) from error


def _stack_of(site: Site | None, named: str | None) -> str | None:
    """Return the stack's name. A site with one stack needs none named; a Python's path may be given all the same."""
    if site is None or (named is not None and os.sep in named):
        return named
    if named is None and len(site.stacks) <= 1:
        return next(iter(site.stacks), None)
    from perf.cluster.sites import SiteError

    if named is None:
        raise pytest.UsageError(f"{site.path} has several stacks; name one: --stack={'|'.join(site.stacks)}")
    try:
        site.stack(named)
    except SiteError as error:
        raise pytest.UsageError(str(error)) from error
    return named


def _plant(name: str | None, records: tuple[Path, ...]) -> str | None:
    if name is None:
        return None
    if records:
        raise pytest.UsageError(
            "--plant plants a fault in launches; with --records there are none to plant it in"
        )
    try:
        return check_name(name)
    except NoSuchFault as error:
        raise pytest.UsageError(str(error)) from error


def _profile_of(run: Path) -> str | None:
    """Return the profile that a stored run had; None where it doesn't say, or says one that there isn't."""
    try:
        environment = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    options = environment.get("options") if isinstance(environment, dict) else None
    found = options.get("profile") if isinstance(options, dict) else None
    return found if found in PROFILES else None
