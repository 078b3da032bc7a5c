"""`dynid demo`: a whole identification of a simulated built-in robot, with a report at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.output import Json, print_json, show_progress


def command(
    output: Annotated[Path, typer.Option("-o", "--output",
                                         help="Folder for logs, run file and result; an earlier demonstration there is "
                                              "replaced.")] = Path("dynid-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the motions and the noise.")] = 0,
    json: Json = False,
) -> None:
    """Run a whole identification on a simulated robot: design a motion, log it, identify, validate, report."""
    from dynid.cli.tables import print_demo
    from dynid.runs.demonstration import demo, demo_facts

    with show_progress("demo") as progress:
        found = demo(output, progress, seed=seed)
    facts = demo_facts(found)
    if json:
        print_json({**facts, "outputs": found.written})
    else:
        print_demo(found, facts)
