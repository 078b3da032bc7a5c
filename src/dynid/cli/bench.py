"""`dynid bench`: speed of dynid and other tools in one process. The benchmarks are in benchmarks/ of the source."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.output import Json
from dynid.cli.scripts import SOURCE, Scripts

FOLDER = SOURCE / "benchmarks"


def command(
    name: Annotated[str | None, typer.Argument(help="Name of the benchmark. Default: list all benchmarks.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all benchmarks, one after the other.")] = False,
    only: Annotated[str, typer.Option("--only", metavar="NAMES", show_default=False,
                                      help="Parts to run, comma-separated, if the benchmark has several: for example "
                                           "names of machines for `defaults`.")] = "",
    machines: Annotated[int | None, typer.Option("--machines", min=1, show_default=False,
                                                 help="Number of simulated machines. Default: the number that the "
                                                      "benchmark specifies.")] = None,
    first: Annotated[int | None, typer.Option("--seed", min=0, show_default=False,
                                              help="Seed of the first simulated machine.")] = None,
    json: Json = False,
) -> None:
    """Compare the speed of dynid with that of other tools, in one process."""
    options = {"only": tuple(only.split(",")) if only else None, "machines": machines, "first": first}
    given = {key: value for key, value in options.items() if value is not None}
    Scripts("benchmark", FOLDER, "compares with").command(name, every, json, given)
