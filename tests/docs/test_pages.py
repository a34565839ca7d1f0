"""What the docs say is there: links, files, sessions, options."""

from __future__ import annotations

import ast
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("faults/*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def sessions():
    """Return the names of the noxfile's sessions."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("session" in ast.unparse(d) for d in node.decorator_list)
    }


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    """Files are there, and so are the headings that are named."""
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        if "://" in name:
            continue
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: there is no {target}"
        if anchor:
            assert anchor in anchors(target), f"{link}: {target.name} has {sorted(anchors(target))}"


def test_every_page_is_in_the_index():
    """Who looks for something finds it in docs/README.md."""
    listed = set(LINK.findall((DOCS / "README.md").read_text(encoding="utf-8")))
    pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}
    assert set() == pages - listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_session_that_a_page_names_exists(page):
    """`nox -s NAME`, as often as the docs say it."""
    text = page.read_text(encoding="utf-8")
    named = {
        name for found in re.findall(r"nox -s ((?:[a-z_]+ )*[a-z_]+)", text) for name in found.split()[:1]
    }
    assert set() == named - sessions()


def commands(value):
    """Yield every text of a YAML document that is run as a command."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("run", "script"):
                yield from [item] if isinstance(item, str) else item
            else:
                yield from commands(item)
    elif isinstance(value, list):
        for item in value:
            yield from commands(item)


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_a_ci_example_is_yaml_and_calls_sessions_that_exist(name):
    """A mistake there would be found by whoever copied it. smoke is what it is for."""
    parsed = yaml.safe_load((DOCS / "ci" / name).read_text(encoding="utf-8"))
    called = [word for text in commands(parsed) for word in re.findall(r"nox -s ([a-z_]+)", text)]
    assert "smoke" in called
    assert set() == set(called) - sessions()


def test_the_ci_examples_have_what_their_hosts_ask_for():
    """GitHub: triggers (YAML reads `on` as true), a runner and steps. GitLab: declared stages, a script."""
    github = yaml.safe_load((DOCS / "ci" / "github.yml").read_text(encoding="utf-8"))
    assert {"push", "pull_request", "workflow_dispatch"} == set(github[True])
    for job in github["jobs"].values():
        assert "runs-on" in job
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    gitlab = yaml.safe_load((DOCS / "ci" / "gitlab.yml").read_text(encoding="utf-8"))
    for name, job in gitlab.items():
        if name not in ("stages", "default"):
            assert job["stage"] in gitlab["stages"]
            assert job["script"]


@pytest.fixture
def checkout(tmp_path):
    """Return a function that makes a checkout whose suite ends with a status, and runs the nightly script on it."""

    def nightly(status):
        python = tmp_path / ".nox" / "driver" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\necho "asked: $*"\nexit {status}\n')
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        return tmp_path

    return nightly


NIGHTLY = str(DOCS / "ci" / "nightly.sh")


@pytest.mark.parametrize(("status", "speaks"), [(0, False), (10, False), (1, True), (11, True), (12, True)])
def test_a_night_is_told_only_where_somebody_has_to_look(checkout, status, speaks):
    """cron mails what is printed; the status stays the suite's, and the options are handed on."""
    folder = checkout(status)
    done = subprocess.run(
        [NIGHTLY, str(folder), "--site=my site.toml", "--profile=quick"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.defpath},
    )
    assert (status, speaks) == (done.returncode, bool(done.stdout)), done.stderr
    assert (
        "asked: -E -s -m perf.cluster --site=my site.toml --profile=quick\n"
        == (folder / "nightly.log").read_text()
    )


def test_two_nights_never_run_at_once(checkout):
    """A run that still waits in the queue is left to wait."""
    folder = checkout(0)
    hold = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print('held', flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(folder / ".nightly.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert "held\n" == holder.stdout.readline()
        done = subprocess.run(
            [NIGHTLY, str(folder)], capture_output=True, text=True, check=False, env={"PATH": os.defpath}
        )
        assert 75 == done.returncode
        assert "still going on" in done.stderr
    finally:
        holder.communicate("\n")
    assert not (folder / "nightly.log").exists()
