"""Options that several commands share, and the conversion of their texts to values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.errors import DynidError
from dynid.quantities import finite_number

if TYPE_CHECKING:
    from dynid.robot import Robot

RobotName = Annotated[str, typer.Argument(metavar="ROBOT", show_default=False,
                                          help="A URDF, an MJCF, a robot TOML file (DH or MDH) or the name of a "
                                               "built-in robot.")]
Assignments = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", show_default=False,
                                                       help="Any setting of a run file, such as prepare.cutoff=8 or "
                                                            "log.unit=deg; may be repeated.")]
NoSimulation = Annotated[bool, typer.Option("--no-simulation", help="Skip validation by simulation.")]
Horizon = Annotated[float | None, typer.Option(metavar="SECONDS", show_default="of the run, or 0.5",
                                               help="Length of the simulated windows, s; each starts from the "
                                                    "measured motion.")]
LogMapping = Annotated[Path | None, typer.Option(
    "--mapping", show_default=False, help="TOML file with a \\[log] table that specifies how to read the logs.")]
OtherMapping = Annotated[Path | None, typer.Option("--mapping", show_default=False,
                                                   help="TOML file with a \\[log] table, if these logs have another "
                                                        "format than those of the identification.")]
LogAssignments = Annotated[list[str] | None, typer.Option("--set", metavar="log.KEY=VALUE", show_default=False,
                                                          help="A setting of the \\[log] table, such as "
                                                               "log.unit=deg; may be repeated.")]
Start = Annotated[float | None, typer.Option(metavar="SECONDS", show_default=False,
                                             help="Ignore samples before this time, counted from the first row of a "
                                                  "log.")]
Stop = Annotated[float | None, typer.Option(metavar="SECONDS", show_default=False,
                                            help="Ignore samples from this time on, counted from the first row of a "
                                                 "log.")]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDRESS", show_default=False,
                                               help="Compute on the Dask cluster of this scheduler, tcp://HOST:PORT "
                                                    "or tls://HOST:PORT.")]
Tls = Annotated[str, typer.Option("--tls", metavar="CA,CERT,KEY", show_default="Dask's configuration",
                                  help="PEM files for a scheduler at tls://: certificate authority, certificate, key.")]
Lock = Annotated[list[str] | None, typer.Option("--lock", metavar="JOINT[=POSITION]", show_default=False,
                                                help="Lock a joint at zero or at this position, rad or m; may be "
                                                     "repeated.")]
Only = Annotated[str, typer.Option(metavar="JOINT,...", show_default=False,
                                   help="Joints to identify; the others are locked at zero, or as given by --lock.")]
FixedBase = Annotated[bool | None, typer.Option("--fixed-base/--floating-base", show_default="as in the file",
                                                rich_help_panel="Base of the robot",  # two names: a wide column
                                                help="Fix the root link of the robot to the ground, or let it move "
                                                     "freely.")]
Cutoff = Annotated[float | None, typer.Option(help="Low-pass cut-off, Hz. Default: chosen from the data.",
                                              show_default=False)]
Friction = Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                       help="Friction terms of every joint, comma-separated: viscous, coulomb, offset, "
                                            "...")]
NominalFriction = Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                              help="Friction terms of every joint with the values of the robot file: "
                                                   "viscous, coulomb, offset, ...")]
Rotor = Annotated[bool, typer.Option("--rotor", help="Include the reflected rotor inertia of every joint.")]
ResultFolder = Annotated[Path, typer.Argument(metavar="RESULT", show_default=False,
                                              help="Result folder of `dynid identify -o`.")]
ForceLog = Annotated[bool, typer.Option("--force", help="Replace an existing log.")]
ForceFiles = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
ForceResult = Annotated[bool, typer.Option("--force", help="Replace an earlier result in the output folder.")]
Trust = Annotated[bool, typer.Option("--trust", help="Allow execution of a Python file that a result, prior or run "
                                                     "file names as its model; read the file first.")]


def load_robot(name: str, only: str, lock: Sequence[str] | None, fixed_base: bool | None = None) -> Robot:
    """Return a robot as the options --only, --lock and --fixed-base specify it.

    Args:
        name: a robot file, or the name of a built-in robot.
        only: comma-separated names of the joints that move; empty for all joints.
        lock: locked joints, as texts JOINT or JOINT=POSITION.
        fixed_base: whether the root link is fixed to the ground; None for the base that the robot file specifies.
    """
    from dynid.robot import Robot
    from dynid.runs.arguments import lock_table
    from dynid.runs.models import reduced_robot

    return reduced_robot(Robot.load(name, fixed_base=fixed_base), words(only), lock_table(lock or []))


def simulation_table(left_out: bool, horizon: float | None) -> dict[str, bool | float | None]:
    """Return the [simulation] table of a run file from the options --no-simulation and --horizon."""
    return {"run": False if left_out else None, "horizon": horizon}


def words(text: str) -> tuple[str, ...]:
    """Return the words of a comma-separated text such as 'viscous, coulomb'; empty for no text."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def numbers(text: str, option: str, form: str = "") -> list[float] | None:
    """Return the numbers of a comma-separated text such as '0.1,0.2', or None for no text.

    form: names of the numbers if their count is fixed, such as X,Y,Z.
    """
    if not text.strip():
        return None
    try:
        found = [finite_number(part) for part in text.split(",")]
    except ValueError:
        raise DynidError(f"{option} takes comma-separated numbers, such as 0.1,0.2, got '{text}'",
                         code="not-a-number") from None
    count = len(form.split(","))
    if form and len(found) != count:
        raise DynidError(f"{option} takes {count} numbers, {form}, got '{text}'", code="not-a-number")
    return found


def named_numbers(entries: Sequence[str], option: str) -> dict[str, list[float]]:
    """Return numbers by name from entries NAME=X or NAME=X1,X2."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        name, sign, text = entry.partition("=")
        values = numbers(text, option) if sign else None
        if not name.strip() or not values:
            raise DynidError(f"{option} needs NAME=NUMBER, got '{entry[:80]}'", code="not-a-number")
        found[name.strip()] = values
    return found


def deviating(text: str, option: str) -> float | tuple[float, float] | None:
    """Return the number of a text such as '4.1', or number and standard deviation of a text such as '4.1+-0.01'.

    An empty text gives None.
    """
    if not text.strip():
        return None
    try:
        found = [finite_number(part) for part in text.split("+-", 1)]
    except ValueError:
        raise DynidError(f"{option} takes a number such as 4.1 or 4.1+-0.01, got '{text}'",
                         code="not-a-number") from None
    return found[0] if len(found) == 1 else (found[0], found[1])


def tls_files(text: str) -> tuple[str, str, str] | None:
    """Return the three file names of 'ca.pem,cert.pem,key.pem', or None for no text."""
    if not text:
        return None
    names = words(text)
    if len(names) != 3:
        raise DynidError(f"--tls takes three PEM files, CA,CERT,KEY, got '{text}'")
    return names[0], names[1], names[2]
