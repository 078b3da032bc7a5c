"""Execution of the code blocks of a page: Python in one namespace, commands in this process, files in one folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from typer.testing import CliRunner

from dynid.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from page_blocks import blocks  # noqa: E402


def command(words):
    """Run a command in this process and compare its exit code with the last word."""
    *call, code = (os.path.expandvars(word) for word in words)
    done = CliRunner().invoke(app, call, prog_name="dynid")
    assert done.exit_code == int(code), f"dynid {' '.join(call)}\n{done.output}\n{done.exception!r}"
    return done.output


def run_page(page, apart=False):
    """Run a page from top to bottom in the current folder; apart: run every block of Python separately."""
    names: dict = {"__name__": "__main__"}
    for block in blocks(page):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        for words in block.commands:
            command(words)
        if block.language == "python":
            exec(compile(block.text, page.name, "exec"), {"__name__": "__main__"} if apart else names)
    return names
