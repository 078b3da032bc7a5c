"""Options for motions, and output of motions to files and the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli.output import console, print_outputs, table
from dynid.errors import DynidError
from dynid.files import refuse_to_replace
from dynid.progress import ProgressCallback

if TYPE_CHECKING:
    from dynid.arrays import Array
    from dynid.report.pages.motion import MotionData
    from dynid.robot import Robot
    from dynid.runs.safe_motion import Safety

MAX_SHOWN_NOISES = 8  # torques in the title of a table
SUFFIXES = (".csv", ".npz", ".yaml", ".yml")

MotionFile = Annotated[Path, typer.Option("-o", "--output", show_default=False,
                                          help="Motion file: .csv, .npz or .yaml (ROS 2 JointTrajectory).")]
Rate = Annotated[float, typer.Option(help="Sampling rate of the file and of the future log, Hz.")]
Noise = Annotated[str, typer.Option(metavar="X|X1,X2,...", show_default=False,
                                    help="Standard deviation of the torque noise, N m or N: one number, or one per "
                                         "joint.")]
LimitsFile = Annotated[Path | None, typer.Option(metavar="FILE.toml", show_default=False,
                                                 help="TOML file with limits in addition to those of the robot: "
                                                      "joints, workspace, postures.")]
Margin = Annotated[float | None, typer.Option(show_default="0.05", help="Share of the robot's ranges, velocities and "
                                                                        "torques to keep as a margin.")]
Box = Annotated[str, typer.Option(metavar="X1,Y1,Z1,X2,Y2,Z2", show_default=False,
                                  help="Box that all links stay inside of, m, base frame: its two corners.")]
Floor = Annotated[float | None, typer.Option(metavar="Z", show_default=False,
                                             help="Height of the floor, m, against gravity from the origin of the base "
                                                  "frame.")]
Radius = Annotated[float | None, typer.Option(metavar="M", show_default="5 % of the longest chain of links",
                                              help="Radius of the links without readable collision shapes, m.")]
Gravity = Annotated[str, typer.Option(metavar="X,Y,Z", show_default=False,
                                      help="Gravity in the base frame, m/s^2, of a base that is tilted or hangs; it "
                                           "turns the floor, too.")]
MotionPage = Annotated[Path | None, typer.Option(metavar="PAGE.html", show_default=False,
                                                 help="HTML report with plots and a 3-D preview.")]


def mounted(machine: Robot, gravity: str) -> Robot:
    """Return the robot with gravity (X,Y,Z, m/s^2) as given on the command line, or unchanged for an empty text."""
    from dynid.cli.options import numbers

    down = numbers(gravity, "--gravity", "X,Y,Z")
    return machine if down is None else machine.with_gravity(down)


def safety(box: str, floor: float | None, radius: float | None, speed: float | None = None,
           full_range: bool = False) -> Safety:
    """Return the safety settings of a motion from the options of the command line."""
    from dynid.cli.options import numbers
    from dynid.runs.safe_motion import Safety

    corners = numbers(box, "--box")
    return Safety(None if corners is None else tuple(corners), floor, radius, speed, full_range)


def check_outputs(output: Path, report: Path | None, force: bool) -> None:
    """Raise an error if the motion file has an unknown extension, or if a file exists and `force` is not given."""
    if output.suffix.lower() not in SUFFIXES:
        raise DynidError(f"{output} should end in {', '.join(SUFFIXES)}: CSV, NumPy or ROS 2 JointTrajectory",
                         code="unknown-extension")
    refuse_to_replace([output, *([report] if report else [])], force)


def write_outputs(data: MotionData, output: Path, report: Path | None, progress: ProgressCallback) -> dict[str, str]:
    """Write the motion, and its report if requested. Return the paths by name."""
    from dynid.report.pages.motion import write_motion

    data.excitation.save(output)
    if report is None:
        return {"motion": str(output)}
    progress("writing the page")
    return {"motion": str(output), "report": str(write_motion(data, report))}


# -- screen output -----------------------------------------------------------------------------------
def show(data: MotionData, written: dict[str, str]) -> None:
    """Print the quality of the motion, the expected standard errors and the margins to its limits."""
    from dynid.quantities import percent_text
    from dynid.report.pages.motion import used
    from dynid.runs.safe_motion import safety_sentences

    to, found = console(), data.excitation
    for sentence in safety_sentences(data):
        to.print(sentence, markup=False)
    if found.interrupted:
        to.print("Interrupted: this is the best motion found so far.")
    is_searched = found.starts and found.criterion != "condition"
    value = f"criterion '{found.criterion}' {found.value:.4g}, " if is_searched else ""
    to.print(f"{data.robot.name}: {found.trajectory.duration:g} s, {value}condition number {found.condition:.4g}"
             + (f", {found.starts} starts in {found.elapsed:.1f} s" if found.starts else ""))
    to.print()
    worst = data.worst[:12]
    head = ["name", "standard error", *(["before"] if data.before is not None else []), "unit", "relative"]
    rows = [(found.base.names[k], f"{found.std[k]:.3g}",
             *([f"{data.before[k]:.3g}"] if data.before is not None else []), found.base.units[k],
             percent_text(data.relative[k]) if data.relative[k] < 1e6 else "-") for k in worst]
    to.print(table(head, rows, numbers=["standard error", "before", "relative"],
                   title=f"Expected at {found.rate:g} Hz, noise {_noise_words(found.noise)} N m (N): "
                         f"the {len(rows)} worst of {len(found.base)} base parameters"))
    tight = sorted(found.report.usages, key=lambda usage: -usage.excess)[:8]
    to.print(table(["quantity", "of", "reaches", "limit", "used"], [
        (usage.kind, usage.where, f"{usage.value:.4g}", f"{usage.bound:.4g}",
         "-" if used(usage) is None else f"{used(usage):.1f} %") for usage in tight],
        numbers=["reaches", "limit", "used"], title="Closest to their limits"))
    for note in data.notes:
        to.print(f"Note: {note}.", markup=False)
    print_outputs(written)


def _noise_words(noise: Array) -> str:
    """Return the torque noise of every joint as text; the smallest and the largest if there are many joints."""
    if len(noise) > MAX_SHOWN_NOISES:
        return f"{noise.min():.3g} to {noise.max():.3g}"
    return ", ".join(f"{x:.3g}" for x in noise)
