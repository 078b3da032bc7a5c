"""`dynid excite`: design of an exciting motion inside the limits, for the robot's controller."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dynid.cli import motion_output, options
from dynid.cli.output import Json, console, print_json, show_progress, table, typed_command
from dynid.errors import DynidError

if TYPE_CHECKING:
    from dynid.excitation import Standing
    from dynid.robot import Robot
    from dynid.runs.actuator_experiment import ExperimentRequest
    from dynid.runs.motion_design import MotionRequest

BUDGET = 30.0  # s: default time limit of the search
MAX_SHOWN_NAMES = 8  # names per sentence
MAX_SHOWN_NOTES = 4  # the written plan has all notes
MAX_SHOWN_PARAMETERS = 16  # lines of the table; the written plan has all parameters

FamilyName = Literal["fourier", "fourier+quintic", "bspline"]
EquationsName = Literal["projected", "wrenches", "base"]
CriterionName = Literal["condition", "condition+", "frobenius", "d", "a", "largest", "hadamard"]


def command(
    robot: options.RobotName,
    output: motion_output.MotionFile,
    duration: Annotated[float | None, typer.Option(help="Duration of the exciting motion, s; with --actuator, of all "
                                                        "recordings "
                                                        "together.", show_default="20; 60 with --actuator")] = None,
    harmonics: Annotated[int, typer.Option(min=1, help="Number of harmonics of the Fourier series.")] = 5,
    kind: Annotated[FamilyName, typer.Option(help="Family of trajectories.")] = "fourier",
    criterion: Annotated[CriterionName | None, typer.Option(
        help="Optimisation criterion.", show_default="condition; largest with --improve, a with --standing")] = None,
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction terms of every joint, comma-separated: viscous, "
                                               "coulomb, offset, ...; with --actuator a model, m1 to m6.")] = "",
    rotor: options.Rotor = False,
    home: Annotated[str, typer.Option(metavar="Q1,Q2,...", show_default=False,
                                      help="Posture at the start and the end; the approach from this posture is not "
                                           "part of the duration.")] = "",
    budget: Annotated[float | None, typer.Option(
        help="Time limit of the search, s. Default with --rounds: none.", show_default=f"{BUDGET:g}")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, show_default=False, help="Number of search rounds, each with "
                                                                               "four random starts; the result then "
                                                                               "depends only on the seed.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    rate: motion_output.Rate = 100.0,
    noise: motion_output.Noise = "",
    limits: motion_output.LimitsFile = None,
    margin: motion_output.Margin = None,
    box: motion_output.Box = "",
    floor: motion_output.Floor = None,
    radius: motion_output.Radius = None,
    gravity: motion_output.Gravity = "",
    speed: Annotated[float | None, typer.Option(metavar="SHARE", show_default="0.6",
                                                help="Largest speed as a share of the joints' top speeds.")] = None,
    full_range: Annotated[bool, typer.Option("--full-range", help="Use the whole joint ranges although collisions are "
                                                                  "not fully checked.")] = False,
    only: options.Only = "",
    lock: options.Lock = None,
    fixed_base: options.FixedBase = None,
    standing: Annotated[str, typer.Option(metavar="FRAME,...", show_default=False,
                                          help="Feet of a robot with a free base that stand still on level ground.")
                        ] = "",
    sole: Annotated[str, typer.Option(metavar="LENGTH,WIDTH", show_default=False,
                                      help="With --standing: size of the soles, m, centred at their frames. Default: "
                                           "feet are points.")] = "",
    friction_cone: Annotated[float | None, typer.Option(
        metavar="MU", show_default="0.6", help="With --standing: friction coefficient of the ground.")] = None,
    support_margin: Annotated[float | None, typer.Option(
        metavar="M", show_default="0.02", help="With --standing: smallest distance of the centre of pressure from the "
                                               "edge of the support polygon, m.")] = None,
    equations: Annotated[EquationsName | None, typer.Option(
        show_default="projected", help="With --standing: equations by which the log will be identified; projected "
                                       "needs no foot sensors.")] = None,
    sway: Annotated[float | None, typer.Option(metavar="M", show_default="0.1",
                                               help="With --standing: largest displacement of the base along each "
                                                    "axis, m.")] = None,
    tilt: Annotated[float | None, typer.Option(metavar="RAD", show_default="0.3",
                                               help="With --standing: largest rotation of the base about each axis, "
                                                    "rad.")] = None,
    improve: Annotated[Path | None, typer.Option(metavar="RESULT", show_default=False,
                                                 help="Result folder of `dynid identify -o` whose largest "
                                                      "standard errors are to be reduced.")] = None,
    repeat: Annotated[int, typer.Option(min=0, metavar="N", show_default=False,
                                        help="With --improve: number of rounds of designing, recording and "
                                             "identifying; the output is a folder.")] = 0,
    record: Annotated[str, typer.Option(metavar="virtual|COMMAND", show_default=False,
                                        help="With --repeat: recorder of the motions: virtual (simulated), or a "
                                             "command with {motion} and {log} in place of file names.")] = "",
    actuator: Annotated[str, typer.Option(metavar="LAW", show_default=False,
                                          help="Design recordings for `dynid actuators` instead of one motion: drive "
                                               "law pd, pid, cascade, voltage or current. ROBOT may be `pendulum`; "
                                               "the output is a folder.")] = "",
    gain: Annotated[list[str] | None, typer.Option(metavar="NAME=X[,X...]", show_default=False,
                                                   help="With --actuator: known parameter of the drive law, or values "
                                                        "to which the drive can be set, such as kp=8,16,32.")] = None,
    value: Annotated[list[str] | None, typer.Option(metavar="NAME=X", show_default=False,
                                                    help="With --actuator: assumed value of an unknown parameter, such "
                                                         "as armature=0.01.")] = None,
    mass: Annotated[str, typer.Option(metavar="KG,...", show_default=False,
                                      help="With --actuator: masses to mount on the pendulum, kg.")] = "",
    length: Annotated[float | None, typer.Option(metavar="M", show_default=False,
                                                 help="With --actuator: length of the pendulum, m.")] = None,
    arm_mass: Annotated[float, typer.Option(metavar="KG",
                                            help="With --actuator: mass of the pendulum's arm, kg.")] = 0.0,
    part: Annotated[float, typer.Option(metavar="S", help="With --actuator: duration of one recording, s.")] = 10.0,
    report: motion_output.MotionPage = None,
    force: options.ForceFiles = False,
    trust: options.Trust = False,
    json: Json = False,
) -> None:
    """Design a motion that excites every base parameter and respects every limit; Ctrl-C keeps the best so far."""
    if actuator:
        from dynid.runs.actuator_experiment import PENDULUM, ExperimentRequest

        machine = None if robot == PENDULUM else motion_output.mounted(options.load_robot(robot, only, lock), gravity)
        _actuators(ExperimentRequest(
            robot, actuator, options.named_numbers(gain or [], "--gain"),
            {name: given[0] for name, given in options.named_numbers(value or [], "--value").items()}, friction or "m4",
            options.numbers(mass, "--mass") or (), length, arm_mass, limits, margin,
            motion_output.safety(box, floor, radius, speed, full_range), options.numbers(home, "--home"),
            60.0 if duration is None else duration, part, rate, seed), machine, output, force, json)
        return
    if gain or value or mass or length is not None:
        raise DynidError("--gain, --value, --mass and --length need --actuator LAW", code="conflicting-options")
    if not repeat:
        motion_output.check_outputs(output, report, force)
    posture, noises = options.numbers(home, "--home"), options.numbers(noise, "--noise")

    from dynid.excitation import Search
    from dynid.excitation.trajectories.families import family_named
    from dynid.runs.motion_design import MotionRequest, design_motion, motion_facts

    machine = motion_output.mounted(options.load_robot(robot, only, lock, fixed_base), gravity)
    seconds = BUDGET if budget is None and rounds is None else budget
    request = MotionRequest(
        friction=options.words(friction), rotor=rotor, limits=limits, margin=margin, improve=improve, noise=noises,
        home=posture, rate=rate, criterion=criterion,
        search=Search(seconds, rounds, seed),
        family=family_named(kind, 20.0 if duration is None else duration, harmonics),
        command=typed_command(), trust=trust,
        safety=motion_output.safety(box, floor, radius, speed, full_range),
        standing=_standing(standing, {"sole": options.numbers(sole, "--sole"), "friction": friction_cone,
                                      "margin": support_margin, "equations": equations,
                                      "sway": sway, "tilt": tilt}))
    if repeat:
        improve_rounds(machine, request, output, repeat, record, json)
        return
    with show_progress("excite (Ctrl-C keeps the best motion so far)") as progress:
        data = design_motion(machine, request, progress)
        written = motion_output.write_outputs(data, output, report, progress)
    if json:
        print_json({**motion_facts(data), "outputs": written})
    else:
        motion_output.show(data, written)


def _standing(feet: str, values: dict[str, Any]) -> Standing | None:
    """Return the settings of the standing feet from the command's options, or None if no feet are named."""
    from dynid.excitation import Standing

    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                             for name, value in values.items() if value is not None}
    if not feet:
        if given:
            raise DynidError("--sole, --friction-cone, --support-margin, --equations, --sway and --tilt need "
                             "--standing FRAME,...", code="no-standing-feet")
        return None
    return Standing(options.words(feet), **given)


def _actuators(request: ExperimentRequest, machine: Robot | None, output: Path, force: bool, json: bool) -> None:
    """Design recordings for `dynid actuators`, write them into a folder, and print purpose and expected accuracy."""
    from dynid.files import try_folder
    from dynid.runs.actuator_experiment import design_experiment, experiment_facts, write_experiment

    if output.suffix.lower() in motion_output.SUFFIXES:
        raise DynidError(f"{output} looks like a file; with --actuator the output is a folder of several recordings",
                         code="output-is-folder")
    try_folder(output)
    with show_progress("excite") as progress:
        plan = design_experiment(request, machine, progress)
        written = write_experiment(plan, output, force)
    if json:
        print_json({**experiment_facts(plan), "outputs": written})
        return
    to = console()
    to.print(f"{len(plan.parts)} recordings for {', '.join(plan.joints)}; {plan.collisions}. Watch the first run, one "
             "hand on the emergency stop.", markup=False)
    to.print(table(["recording", "growth of standard errors without it"], [
        (part.title, ", ".join(f"{name} {factor:.2g} times" for name, factor in part.separates.items()) or "-")
        for part in plan.parts]))
    to.print(table(["parameter", "assumed", "standard error", "unit"], [
        (name, f"{value:.3g}", std, unit) for name, value, std, unit in
        list(zip(plan.parameters, plan.values, plan.std_words, plan.units, strict=True))[:MAX_SHOWN_PARAMETERS]],
        numbers=["assumed", "standard error"], title="Expected with residuals of real servos"))
    for note in plan.notes[:MAX_SHOWN_NOTES]:
        to.print(f"Note: {note}.", markup=False)
    if len(plan.notes) > MAX_SHOWN_NOTES:
        to.print(f"{len(plan.notes) - MAX_SHOWN_NOTES} more notes: in {written['plan']}", markup=False)
    if plan.not_identified:
        more = len(plan.not_identified) - MAX_SHOWN_NAMES
        to.print(f"Not determined by this experiment: {', '.join(plan.not_identified[:MAX_SHOWN_NAMES])}"
                 + (f" and {more} more." if more > 0 else "."), markup=False)
    to.print(f"plan: {written['plan']}", markup=False)


def improve_rounds(machine: Robot, request: MotionRequest, folder: Path, repeat: int, record: str, json: bool) -> None:
    """Design, record and identify repeatedly, and print the result of each round."""
    from dynid.runs.improve_loop import improve_in_loop, recorder_for

    if not record:
        raise DynidError("--repeat needs a recorder of the motions", "add --record virtual, or a command such as "
                         "--record 'python play.py {motion} {log}'", code="no-recorder")
    if folder.suffix:
        raise DynidError(f"{folder} looks like a file; with --repeat the output is a folder of motions, logs and "
                         "results")
    with show_progress("excite, record, identify") as progress:
        found = improve_in_loop(machine, request, recorder_for(record, machine, request), folder, repeat, progress)
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
