"""`dynid schema`: JSON schemas of run files and of the outputs of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.output import print_json
from dynid.errors import DynidError

RUN_FILE = "run"


def command(
    name: Annotated[str, typer.Argument(metavar="[run|COMMAND]", show_default="run",
                                        help="run: schema of run files; name of a command: schema of its output with "
                                             "--json.")] = RUN_FILE,
) -> None:
    """Print the JSON schema of run files, with which editors complete and check them, or of a command's output."""
    from dynid.cli.output_schemas import FORMS, command_schema
    from dynid.runs.schema import run_file_schema

    if name != RUN_FILE and name not in FORMS:
        raise DynidError(f"there is no schema '{name}'; there are {', '.join((RUN_FILE, *FORMS))}", code="unknown-name")
    print_json(run_file_schema() if name == RUN_FILE else command_schema(name))
