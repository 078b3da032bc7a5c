"""`dynid motion`: generation of a motion without optimisation, checked and drawn like the motions of `dynid excite`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dynid.cli import motion_output
from dynid.cli.options import FixedBase, ForceFiles, Friction, Lock, Only, RobotName, Rotor, load_robot, numbers, words
from dynid.cli.output import Json, print_json, show_progress, typed_command

KindName = Literal["points", "spline", "sines", "friction", "gravity", "inertia", "coupling", "null-space", "through"]


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
                                              help="Frame that stays fixed in null-space motions.")] = None,
    home: Annotated[str, typer.Option(metavar="Q1,Q2,...", show_default=False,
                                      help="Positions of the joints that rest; posture of null-space motions.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the motion.")] = 0,
    friction: Friction = "",
    rotor: Rotor = False,
    rate: motion_output.Rate = 100.0,
    noise: motion_output.Noise = "",
    limits: motion_output.LimitsFile = None,
    margin: motion_output.Margin = None,
    box: motion_output.Box = "",
    floor: motion_output.Floor = None,
    radius: motion_output.Radius = None,
    gravity: motion_output.Gravity = "",
    only: Only = "",
    lock: Lock = None,
    fixed_base: FixedBase = None,
    report: motion_output.MotionPage = None,
    force: ForceFiles = False,
    json: Json = False,
) -> None:
    """Generate a random motion, a sweep, or a motion through points, and show which parameters the motion excites."""
    motion_output.check_outputs(output, report, force)
    posture, noises = numbers(home, "--home"), numbers(noise, "--noise")

    from dynid.robot.free_base import refuse_free_base
    from dynid.runs.motion_design import motion_facts
    from dynid.runs.unoptimised_motion import PlainMotionRequest, plain_motion

    machine = motion_output.mounted(load_robot(robot, only, lock, fixed_base), gravity)
    refuse_free_base(machine, "the check of a motion")
    with show_progress("motion") as progress:
        data = plain_motion(machine, PlainMotionRequest(
            kind, count=count, through=through, duration=duration, frame=frame, home=posture, seed=seed,
            friction=words(friction), rotor=rotor, limits=limits, margin=margin, noise=noises, rate=rate,
            command=typed_command(), safety=motion_output.safety(box, floor, radius)), progress)
        written = motion_output.write_outputs(data, output, report, progress)
    if json:
        print_json({"kind": kind, **motion_facts(data), "outputs": written})
    else:
        motion_output.show(data, written)
