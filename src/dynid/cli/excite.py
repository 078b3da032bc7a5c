"""`dynid excite`: an exciting motion inside the limits, for the robot's controller."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import motion_output
from dynid.cli.options import FixedBase, Lock, Only, Trust, numbers, words
from dynid.cli.output import Json, print_json, progress, typed_command

BUDGET = 30.0


class FamilyName(StrEnum):
    fourier = "fourier"
    fourier_quintic = "fourier+quintic"
    bspline = "bspline"


class CriterionName(StrEnum):
    condition = "condition"
    condition_plus = "condition+"
    frobenius = "frobenius"
    d = "d"
    a = "a"
    largest = "largest"
    hadamard = "hadamard"


def command(
    robot: motion_output.RobotName,
    output: motion_output.MotionFile,
    duration: Annotated[float, typer.Option(help="Duration of the exciting part, s.")] = 20.0,
    harmonics: Annotated[int, typer.Option(min=1, help="Number of harmonics of the Fourier series.")] = 5,
    kind: Annotated[FamilyName, typer.Option(help="Family of trajectories.")] = FamilyName.fourier,
    criterion: Annotated[CriterionName | None, typer.Option(
        help="Optimisation criterion.", show_default="condition; largest with --improve")] = None,
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction terms of every joint, comma-separated: viscous, "
                                               "coulomb, offset, ...")] = "",
    rotor: motion_output.Rotor = False,
    home: Annotated[str, typer.Option(metavar="Q1,Q2,...", show_default=False,
                                      help="Start and end posture; the approach is not part of the duration.")] = "",
    budget: Annotated[float | None, typer.Option(
        help="Time limit of the search, s. Default with --rounds: none.", show_default=f"{BUDGET:g}")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, show_default=False, help="Rounds of four starts; the "
                                                                               "result then depends only on "
                                                                               "the seed.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    rate: motion_output.Rate = 100.0,
    noise: motion_output.Noise = "",
    limits: motion_output.LimitsFile = None,
    margin: motion_output.Margin = None,
    box: Annotated[str, typer.Option(metavar="X1,Y1,Z1,X2,Y2,Z2", show_default=False,
                                     help="Box that all links stay inside of, m, base frame: its two corners.")] = "",
    floor: Annotated[float | None, typer.Option(metavar="Z", show_default=False,
                                                help="Height of the floor, m, base frame.")] = None,
    radius: Annotated[float | None, typer.Option(metavar="M", show_default=False,
                                                 help="Radius of the links, m, where the robot file has no collision "
                                                      "shapes: they then do not touch each other.")] = None,
    speed: Annotated[float | None, typer.Option(metavar="SHARE", show_default="0.6",
                                                help="Largest speed as a share of the joints' top speeds.")] = None,
    full_range: Annotated[bool, typer.Option("--full-range", help="Use the whole joint ranges although collisions are "
                                                                  "not fully checked.")] = False,
    only: Only = "",
    lock: Lock = None,
    fixed_base: FixedBase = None,
    improve: Annotated[Path | None, typer.Option(metavar="RESULT", show_default=False,
                                                 help="Result folder of `dynid identify -o` whose largest "
                                                      "standard errors are to be reduced.")] = None,
    report: motion_output.MotionPage = None,
    force: motion_output.Force = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Design a motion that excites every base parameter and respects every limit; Ctrl-C keeps the best so far."""
    motion_output.check_outputs(output, report, force)
    posture, noises, corners = numbers(home, "--home"), numbers(noise, "--noise"), numbers(box, "--box")
    space_box = None if corners is None else tuple(corners)

    from dynid.excitation import Search
    from dynid.excitation.trajectories import family_named
    from dynid.robot import Robot
    from dynid.robot.free_base import refuse_free_base
    from dynid.runs.arguments import lock_table
    from dynid.runs.design_motion import MotionRequest, design_motion, motion_facts
    from dynid.runs.models import part_of
    from dynid.runs.safe_motion import Safety

    machine = part_of(Robot.load(robot, fixed_base=fixed_base), words(only), lock_table(lock or []))
    refuse_free_base(machine, "excitation design")
    seconds = BUDGET if budget is None and rounds is None else budget
    with progress("excite (Ctrl-C keeps the best motion so far)") as tell:
        search = Search(seconds, rounds, seed)
        data = design_motion(machine, MotionRequest(
            friction=words(friction), rotor=rotor, limits=limits, margin=margin, improve=improve, noise=noises,
            home=posture, rate=rate,
            criterion=criterion.value if criterion else None, search=search,
            family=family_named(kind.value, duration, harmonics), command=typed_command(), trust=trust,
            safety=Safety(space_box, floor, radius, speed, full_range)), tell)
        written = motion_output.write_outputs(data, output, report, tell)
    if json:
        print_json({**motion_facts(data), "outputs": written})
    else:
        motion_output.show(data, written)
