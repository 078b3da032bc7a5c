"""`dynid schema`: the JSON schema of run files."""

from __future__ import annotations

from dynid.cli.output import print_json


def command() -> None:
    """Print the JSON schema of run files, with which editors complete and check them."""
    from dynid.runs.schema import run_file_schema

    print_json(run_file_schema())
