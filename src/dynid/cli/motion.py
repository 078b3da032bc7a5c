"""`dynid motion`: generation of a motion without optimisation, checked and drawn like those of `dynid excite`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import motion_output
from dynid.cli.options import FixedBase, Lock, Only, RobotName, numbers, words
from dynid.cli.output import Json, print_json, show_progress, typed_command


class KindName(StrEnum):
    points = "points"
    spline = "spline"
    sines = "sines"
    friction = "friction"
    gravity = "gravity"
    inertia = "inertia"
    coupling = "coupling"
    null_space = "null-space"
    through = "through"


def command(
    robot: RobotName,
    kind: Annotated[KindName, typer.Argument(
        metavar="KIND", show_default=False,
        help="points, spline: random postures, with or without a stop at each. sines: one sine per joint. friction, "
             "gravity, inertia, coupling: excite one effect at a time. null-space: the tool stays fixed. through: "
             "way-points from a file.")],
    output: motion_output.MotionFile,
    count: Annotated[int, typer.Option("--points", min=2, help="Number of random postures.")] = 50,
    through: Annotated[Path | None, typer.Option(metavar="FILE.csv", show_default=False,
                                                 help="File of way-points, one posture per row.")] = None,
    duration: Annotated[float, typer.Option(help="Duration of sines and null-space motions, s.")] = 20.0,
    frame: Annotated[str | None, typer.Option(show_default="the last body",
                                              help="Frame that null-space keeps fixed.")] = None,
    home: Annotated[str, typer.Option(metavar="Q1,Q2,...", show_default=False,
                                      help="Posture of the resting joints, and of null-space motions.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the motion.")] = 0,
    friction: Annotated[str, typer.Option("--friction", metavar="KIND,...", show_default=False,
                                          help="Friction terms to identify: viscous, coulomb, offset, ...")] = "",
    rotor: motion_output.Rotor = False,
    rate: motion_output.Rate = 100.0,
    noise: motion_output.Noise = "",
    limits: motion_output.LimitsFile = None,
    margin: motion_output.Margin = None,
    only: Only = "",
    lock: Lock = None,
    fixed_base: FixedBase = None,
    report: motion_output.MotionPage = None,
    force: motion_output.Force = False,
    json: Json = False,
) -> None:
    """Generate a random motion, a sweep, or a motion through points, and show what it excites."""
    motion_output.check_outputs(output, report, force)
    posture, noises = numbers(home, "--home"), numbers(noise, "--noise")

    from dynid.robot import Robot
    from dynid.robot.free_base import refuse_free_base
    from dynid.runs.arguments import lock_table
    from dynid.runs.models import reduced_robot
    from dynid.runs.motion_design import motion_facts
    from dynid.runs.unoptimised_motion import PlainMotionRequest, plain_motion

    machine = reduced_robot(Robot.load(robot, fixed_base=fixed_base), words(only), lock_table(lock or []))
    refuse_free_base(machine, "the check of a motion")
    with show_progress("motion") as progress:
        data = plain_motion(machine, PlainMotionRequest(
            kind.value, count=count, through=through, duration=duration, frame=frame, home=posture, seed=seed,
            friction=words(friction), rotor=rotor, limits=limits, margin=margin, noise=noises, rate=rate,
            command=typed_command()), progress)
        written = motion_output.write_outputs(data, output, report, progress)
    if json:
        print_json({"kind": kind.value, **motion_facts(data), "outputs": written})
    else:
        motion_output.show(data, written)
