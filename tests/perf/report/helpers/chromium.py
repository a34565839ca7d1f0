"""Headless Chromium of the system, for the tests of the report, its pictures in the docs and its benchmark."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import time
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVERS = ("chromedriver", "/usr/lib/chromium/chromedriver")
OPTIONS = (
    "--headless=new",
    # CI runs as root, in containers with a small /dev/shm and no GPU.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
)


def missing() -> str:
    """Return why there is no browser here; '' where there is one."""
    if not _first(BROWSERS) or not _first(DRIVERS):
        return "no Chromium with its driver here (Debian: apt-get install chromium chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "no selenium in this Python (constraints-dev.txt lists it)"
    return ""


@contextlib.contextmanager
def browser():
    """Yield a Chromium that logs what its console says and what it asks the network for."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = _first(BROWSERS)
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # A path: selenium then looks for no driver elsewhere.
    driver = webdriver.Chrome(options=options, service=Service(_first(DRIVERS)))
    try:
        yield Page(driver)
    finally:
        driver.quit()


class Page:
    """One tab."""

    def __init__(self, driver) -> None:
        self.driver = driver

    def open(self, path: Path, *, width: int = 1200, height: int = 900, scheme: str = "light") -> None:
        """Open a file in a window of that size, and wait until its script has run."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.prefer(scheme)
        self.driver.get(path.resolve().as_uri())
        self.until("return document.documentElement.dataset.ready === 'yes'")

    def prefer(self, scheme: str, media: str = "") -> None:
        """Let the system prefer light or dark, and show the page as on `media`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)

    def command(self, name: str, **arguments):
        """Send a command of Chromium's own protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def run(self, script: str, *arguments):
        """Run JavaScript and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str, seconds: float = 60.0):
        """Wait until a script returns something true, and return it; an error names the script after a minute."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def draw(self, selector: str) -> None:
        """Scroll to an element and wait until its pictures are drawn."""
        self.run("document.querySelector(arguments[0]).scrollIntoView()", selector)
        self.until(
            f"const p = document.querySelector('{selector} .plot');"
            "return !p || ['yes', 'no'].includes(p.dataset.drawn);"
        )

    def console(self) -> list[str]:
        """Return what the console has said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> set[str]:
        """Return the addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return {
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        }

    def picture(self, path: Path) -> None:
        """Write what the window shows as a PNG."""
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot")["data"]))


def _first(names) -> str:
    return next((found for name in names if (found := shutil.which(name))), "")
