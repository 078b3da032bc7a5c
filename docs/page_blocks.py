"""Executable parts of a page: its Python code, its `dynid` commands, and the files that it shows."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w.-]+\.\w+)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, and its text without the fences."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name of the file that a block shows, which its first line says: "# arm.toml"."""
        found = FILE.match(self.text)
        return found.group(1) if found and self.language == "toml" else None

    @property
    def commands(self) -> list[list[str]]:
        """Words of each `dynid` command of a shell block; "# exit code 1" behind one stays as its last word."""
        lines = self.text.replace("\\\n", " ").splitlines() if self.language == "sh" else []
        found = []
        for line in lines:
            if line.startswith("dynid "):
                code = re.search(r"# exit code (\d)$", line)
                found.append([*shlex.split(line, comments=True)[1:], code.group(1) if code else "0"])
        return found


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def data_of(page: Path) -> list[str]:
    """Files below DYNID_DATA that a page's commands name."""
    return sorted(set(re.findall(r"\$DYNID_DATA/([\w./-]+)", page.read_text(encoding="utf-8"))))
