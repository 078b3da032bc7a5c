"""A studio in a process of its own and pages of headless Chromium that look at it, for tests, benchmark and pictures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--no-first-run")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """The path of a Chromium that is installed: DYNID_CHROMIUM, or one on the path."""
    return os.environ.get("DYNID_CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass(frozen=True, eq=False)
class Served:
    """A running studio: its process, its address with the token, and the folder it works in."""

    process: subprocess.Popen[str]
    address: str
    folder: Path

    @property
    def origin(self) -> str:
        return "/".join(self.address.split("/", 3)[:3])


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[Served]:
    """A studio that works in `folder`, ended at the end."""
    words = ["studio", "--no-browser", "--folder", str(folder), *arguments]
    process = subprocess.Popen([sys.executable, "-m", "dynid", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http\S+", line)
        assert found is not None, f"the studio printed no address: {line!r}"
        yield Served(process, found[0], folder)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(eq=False)
class Watch:
    """What pages said and asked for: errors on their consoles, and requests that leave the studio."""

    origin: str
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    requests: int = 0

    def follow(self, page: Any) -> Any:
        """The page, watched from now on."""
        page.on("console", self._said)
        page.on("pageerror", lambda problem: self.errors.append(str(problem)))
        page.on("request", self._asked)
        return page

    def _said(self, message: Any) -> None:
        # An answer of 4xx is how the server says that something is wrong; the page shows its sentence.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(f"{message.text} at {message.location.get('url')}")

    def _asked(self, request: Any) -> None:
        self.requests += 1
        if not request.url.startswith((self.origin + "/", "data:", "blob:", "about:")):
            self.outside.append(request.url)


def opened(page: Any, address: str) -> Any:
    """The page at an address once it has heard from the server."""
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    return page
