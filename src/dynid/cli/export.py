"""`dynid export`: a result as files for a simulator, and models drawn from its posterior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from dynid.cli.options import Trust
from dynid.cli.output import Json, console, print_json, show_progress, table
from dynid.errors import DynidError
from dynid.files import refuse_to_replace

if TYPE_CHECKING:
    from dynid.estimate.simulators.exports import Exported
    from dynid.runs.simulator_files import DrawnActuators, DrawnFiles

MAX_DRAW_FILES_PRINTED = 4  # largest number of printed paths of draws

SimulatorTarget = Literal["urdf", "mjcf", "mjlab", "isaaclab", "drake", "sdf", "usd-json"]
IsaacFrictionKind = Literal["torque", "coefficient"]
FileActuators = Literal["replace", "keep"]
UndeterminedValues = Literal["file", "estimate"]


def command(
    result: Annotated[Path, typer.Argument(metavar="RESULT", show_default=False,
                                           help="Result folder of `dynid identify -o` or `dynid actuators -o`.")],
    output: Annotated[Path, typer.Option("-o", "--output", show_default=False,
                                         help="File to write; with --draws a folder.")],
    target: Annotated[SimulatorTarget | None, typer.Option("--for", show_default=False,
                                                           help="Simulator or format; mjcf for MuJoCo, sdf for "
                                                                "Gazebo. Optional with --draws, which then writes "
                                                                "tables only.")] = None,
    draws: Annotated[int, typer.Option("--draws", metavar="N", show_default=False,
                                       help="Draw N physically consistent models from the posterior.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    spread: Annotated[float | None, typer.Option(metavar="SHARE", show_default="0.2",
                                                 help="Relative standard deviation of parameters that the data do "
                                                      "not determine.")] = None,
    drives: Annotated[Path | None, typer.Option("--drives", metavar="FILE", show_default=False,
                                                help="TOML file with a table per joint: stiffness, kd, ki, "
                                                     "force_limit, velocity_limit, delay, torque_constant, "
                                                     "resistance.")] = None,
    source: Annotated[Path | None, typer.Option("--source", metavar="FILE", show_default="the robot of the result",
                                                help="URDF or MJCF of the same robot to write into.")] = None,
    with_payload: Annotated[bool, typer.Option("--with-payload",
                                               help="Add the payload of the result to its link.")] = False,
    isaaclab_friction: Annotated[IsaacFrictionKind, typer.Option(
        help="Meaning of joint friction in Isaac Sim: torque (5.0 and later) or coefficient (before).")] = "torque",
    actuators: Annotated[FileActuators, typer.Option(
        help="Actuators of an MJCF on joints with an identified drive: replace them by the drive, which takes "
             "positions as commands, or keep those of the file.")] = "replace",
    undetermined: Annotated[UndeterminedValues | None, typer.Option(
        show_default="an error", help="Actuator parameters that the logs do not determine: keep the values of the "
                                      "robot file, or write the estimates.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files, export actuators that are not usable, "
                                                        "and --undetermined file.")] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Write an identified robot for a simulator, or models drawn from its uncertainty."""
    from dynid.runs.simulator_files import ExportOptions, draw_result, export_result, output_paths

    if target is None and not draws:
        raise DynidError(f"--for is missing: give one of {', '.join(get_args(SimulatorTarget))}, or draw models with "
                         "--draws N", code="no-target")
    if draws < 0:
        raise DynidError(f"--draws must be above 0, got {draws}", code="out-of-range")
    options = ExportOptions(target or "", drives, source, with_payload, isaaclab_friction, actuators == "keep", force,
                            undetermined or "")
    refuse_to_replace(output_paths(output, draws), force)
    with show_progress("export") as progress:
        if draws:
            drawn = draw_result(result, output, draws, seed, options, spread=spread, trust=trust, progress=progress)
        else:
            found = export_result(result, output, options, trust=trust, progress=progress)
    if json:
        print_json(drawn.to_dict() if draws else found.to_dict())
    elif draws:
        _print_draws(drawn)
    else:
        _print(found)


def _print(found: Exported) -> None:
    """Print the torque of each joint that the simulator cannot represent, the notes and the files."""
    from dynid.quantities import percent_text

    to = console()
    lost = [one for one in found.losses if one.terms]
    if lost:
        where = "the logs of the result" if found.is_logged else "random states within the limits"
        to.print(table(["joint", "torque error", "of torque", "approximated or omitted"],
                       [(one.joint, f"{one.error:.3g}", percent_text(one.percent), ", ".join(one.terms))
                        for one in lost],
                       numbers=["torque error", "of torque"],
                       title=f"Torque that {found.target} cannot represent, along {where} (N m or N)"))
    else:
        to.print(f"{found.target} represents all terms of the model: no torque is lost.")
    if found.written_file is not None:
        to.print(f"{found.written_file.sentence}.", markup=False)
    for note in found.notes:
        to.print(note, markup=False)
    for path in found.paths:
        to.print(str(path), markup=False)


def _print_draws(found: DrawnFiles | DrawnActuators) -> None:
    """Print how the models were drawn from the posterior, the check of their spread, and the written files."""
    to = console()
    for sentence in found.sentences:
        to.print(sentence, markup=False)
    for path in found.paths[:MAX_DRAW_FILES_PRINTED]:
        to.print(str(path), markup=False)
    if len(found.paths) > MAX_DRAW_FILES_PRINTED:
        to.print(f"and {len(found.paths) - MAX_DRAW_FILES_PRINTED} more files")
