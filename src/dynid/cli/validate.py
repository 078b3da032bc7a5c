"""`dynid validate`: torque prediction and simulation of other logs with an earlier result."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.options import (
    Horizon,
    LogAssignments,
    NoSimulation,
    OtherMapping,
    ResultFolder,
    Start,
    Stop,
    Trust,
    simulation_table,
)
from dynid.cli.output import Json, print_json, show_progress


def command(
    result: ResultFolder,
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", show_default=False, help="Logs to predict.")],
    mapping: OtherMapping = None,
    assignments: LogAssignments = None,
    start: Start = None,
    stop: Stop = None,
    no_simulation: NoSimulation = False,
    horizon: Horizon = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Predict the torques of other logs with an earlier result, simulate their motion, and report the errors."""
    from dynid.cli.tables import print_validation
    from dynid.runs.arguments import log_changes, log_table
    from dynid.runs.validation import validate_result

    given = {"log": log_table(mapping, start, stop), "log_changes": log_changes(assignments or []),
             "simulation": simulation_table(no_simulation, horizon)}
    with show_progress("validate") as progress:
        found = validate_result(result, logs, given, progress, trust=trust)
    if json:
        print_json(found.to_dict())
    else:
        print_validation(found)
