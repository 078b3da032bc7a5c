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
MotionPage = Annotated[Path | None, typer.Option(metavar="PAGE.html", show_default=False,
                                                 help="HTML report with plots and a 3-D preview.")]


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

    to, found = console(), data.excitation
    for warning in data.warnings:
        to.print(warning, markup=False)
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
