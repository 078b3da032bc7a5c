"""The loop of `dynid excite --improve RESULT --repeat N --record ...`: run it and show its rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dynid.cli.output import console, print_json, progress, table
from dynid.errors import DynidError

if TYPE_CHECKING:
    from dynid.robot import Robot
    from dynid.runs.design_motion import MotionRequest


def improve_rounds(machine: Robot, request: MotionRequest, folder: Path, repeat: int, record: str, json: bool) -> None:
    """Design, record and identify in turn, and print what each round determines."""
    from dynid.runs.improve_loop import improve_in_loop, recorder_for

    if not record:
        raise DynidError("--repeat needs a robot between the rounds", "add --record virtual, or a command such as "
                         "--record 'python play.py {motion} {log}'", code="no-recorder")
    if folder.suffix:
        raise DynidError(f"{folder} looks like a file; with --repeat the output is a folder of motions, logs and "
                         "results", code="output-is-folder")
    with progress("excite, record, identify") as tell:
        found = improve_in_loop(machine, request, recorder_for(record, machine, request), folder, repeat, tell)
    if json:
        print_json({"rounds": [one.to_dict() for one in found]})
        return
    to = console()
    to.print(table(["round", "not identified", "poorly determined", "largest standard error", "torque error, %"], [
        (str(one.number), str(len(one.not_identified)), str(len(one.poorly_determined)),
         ", ".join(f"{name} {100.0 * share:.3g} %" for name, share in list(one.largest.items())[:2]),
         f"{one.relative_error:.3g}") for one in found], numbers=["round", "not identified", "poorly determined",
                                                                  "torque error, %"]))
    to.print(f"result: {found[-1].result}", markup=False)
