"""`dynid bench`: ours and peers side by side in one process. The benchmarks stand in benchmarks/ of the source."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.output import Json
from dynid.cli.scripts import SOURCE, Scripts

FOLDER = SOURCE / "benchmarks"


def command(
    name: Annotated[str | None, typer.Argument(help="Name of the benchmark. Default: list all benchmarks.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all benchmarks, one after the other.")] = False,
    json: Json = False,
) -> None:
    """Compare dynid's speed with its peers', in one process."""
    Scripts("benchmark", FOLDER, "compares with").command(name, every, json)
