"""`dynid check`: test of a robot or a result for physical consistency, with the violated conditions."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.options import Trust
from dynid.cli.output import Json, print_json, show_progress


def command(
    source: Annotated[str, typer.Argument(metavar="RESULT|ROBOT", show_default=False,
                                          help="Result folder of `dynid identify -o`, or a URDF, an MJCF, a robot "
                                               "TOML file or the name of a built-in robot.")],
    shapes: Annotated[bool | None, typer.Option("--shapes/--no-shapes", show_default=False,
                                                help="Check that centres of mass are inside the collision shapes of "
                                                     "their links. Default: yes for a robot file, and for a result if "
                                                     "its run tested this condition.")] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Test a result or a robot for physical consistency, with reasons by link; exit code 1 if it is inconsistent."""
    from dynid.cli.robot_tables import print_check
    from dynid.runs.consistency_check import check

    with show_progress("check") as progress:
        progress(source)
        found = check(source, shapes=shapes, trust=trust)
    if json:
        print_json(found.to_dict())
    else:
        print_check(found)
    if not found.consistent:
        raise typer.Exit(1)
