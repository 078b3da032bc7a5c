"""`dynid reproduce`: published tables, ours beside theirs. They stand in reproductions/ of the source.

A reproduction's result has `checks`: what must come out, in words, and whether it did.
"""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.output import Json, console
from dynid.cli.scripts import SOURCE, Scripts

FOLDER = SOURCE / "reproductions"


def command(
    name: Annotated[str | None, typer.Argument(help="Which published result; without it, the list of them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them, one after the other.")] = False,
    json: Json = False,
) -> None:
    """Compute published results again and set ours beside theirs."""
    results = Scripts("reproduction", FOLDER, "needs").command(name, every, json)
    failed = False
    for one in results.values():
        for sentence, holds in one["checks"].items():
            failed = failed or not holds
            if not json:
                console().print(f"{'holds' if holds else 'DOES NOT HOLD'}: {sentence}", markup=False)
    if failed:
        raise typer.Exit(1)
