"""`dynid simulate`: simulation of a robot that follows a motion, with a log as output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dynid.cli import options
from dynid.cli.output import Json, console, print_json, print_outputs, show_progress, table
from dynid.files import refuse_to_replace

if TYPE_CHECKING:
    from dynid.runs.virtual_log import VirtualLog

LawName = Literal["computed-torque", "compensated-pd", "pd", "poles", "task-space", "impedance"]


def _per_joint(letters: str, meaning: str) -> Any:
    """Return the typer declaration of an option that takes one number, or one number per joint.

    letters: symbol of the number in the help text, such as K for K1,K2,...; meaning: help text.
    """
    return typer.Option(metavar=f"{letters}|{letters[0]}1,{letters[0]}2,...", show_default=False, help=meaning)


def command(
    robot: options.RobotName,
    trajectory: Annotated[Path, typer.Option(show_default=False,
                                             help="Motion file: .csv or .npz, as written by `dynid excite`.")],
    output: Annotated[Path, typer.Option("-o", "--output", show_default=False, help="Log file: .csv or .npz.")],
    controller: Annotated[LawName, typer.Option(help="Controller: model-based with the nominal model, in joint or task "
                                                     "space; or per joint: pd, or a cascade given by its poles."
                                                )] = "computed-torque",
    bandwidth: Annotated[float, typer.Option(help="Natural frequency of the closed loop, rad/s.")] = 60.0,
    damping: Annotated[float, typer.Option(help="Damping ratio of the closed loop.")] = 1.0,
    encoder: Annotated[str, _per_joint("STEP", "Encoder resolution, rad or m per count: one number, or one per "
                                               "joint.")] = "",
    position_noise: Annotated[str, _per_joint("X", "Standard deviation of the position noise seen by the controller, "
                                                   "rad or m.")] = "",
    torque_noise: Annotated[str, _per_joint("X", "Standard deviation of the noise of logged torques, N m or N.")] = "",
    position_snr: Annotated[str, _per_joint("DB", "Signal-to-noise ratio of the logged positions, dB.")] = "",
    torque_snr: Annotated[str, _per_joint("DB", "Signal-to-noise ratio of the logged torques, dB.")] = "",
    stiffness: Annotated[str, _per_joint("K", "Joint stiffness between motor and link, N m/rad (flexible joints). The "
                                              "log then contains both positions; requires --motor-inertia or "
                                              "--rotor.")] = "",
    joint_damping: Annotated[str, _per_joint("D", "Damping of flexible joints, N m s/rad.")] = "",
    motor_inertia: Annotated[str, _per_joint("J", "Motor inertia of flexible joints, kg m^2.")] = "",
    rate: Annotated[float, typer.Option(help="Rate of the controller and the log, Hz.")] = 1000.0,
    friction: options.NominalFriction = "",
    rotor: options.Rotor = False,
    truth: Annotated[Path | None, typer.Option(metavar="RESULT", show_default=False,
                                               help="Result folder of `dynid identify -o`: the simulated robot has the "
                                                    "identified parameters, and the controller uses those of the robot "
                                                    "file.")] = None,
    only: options.Only = "",
    lock: options.Lock = None,
    fixed_base: options.FixedBase = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise.")] = 0,
    force: options.ForceLog = False,
    trust: options.Trust = False,
    json: Json = False,
) -> None:
    """Simulate a robot that follows a motion under a controller, and write a log that `dynid identify` reads."""
    from dynid.robot.free_base import refuse_free_base
    from dynid.runs.virtual_log import (
        VirtualLoopOptions,
        flexible_joints,
        log_facts,
        log_writer,
        save_log,
        simulate_log,
    )

    log_writer(output)
    refuse_to_replace([output], force)
    given = {"encoder": encoder, "position_noise": position_noise, "torque_noise": torque_noise,
             "position_snr": position_snr, "torque_snr": torque_snr}
    sensors: dict[str, Any] = {name: values for name, text in given.items() if (
        values := options.numbers(text, f"--{name.replace('_', '-')}")) is not None}
    springs = {"stiffness": options.numbers(stiffness, "--stiffness"),
               "damping": options.numbers(joint_damping, "--joint-damping"),
               "rotor": options.numbers(motor_inertia, "--motor-inertia")}
    if any(value is not None for value in springs.values()):
        sensors["flexible"] = flexible_joints(**springs)
    loop = VirtualLoopOptions(controller, bandwidth, damping, rate)
    machine = options.load_robot(robot, only, lock, fixed_base)
    refuse_free_base(machine, "closed-loop simulation")
    with show_progress("simulate") as progress:
        progress(f"{trajectory.name} under {controller}")
        found = simulate_log(machine, trajectory, loop, friction=options.words(friction), rotor=rotor, truth=truth,
                             seed=seed, trust=trust, **sensors)
        progress(f"writing {output.name}")
        written = {"log": str(save_log(found, output))}
    facts = log_facts(found)
    if json:
        print_json({**facts, "outputs": written})
    else:
        _print_log(found, facts, written)


def _print_log(found: VirtualLog, facts: Mapping[str, Any], written: Mapping[str, str]) -> None:
    """Print the tracking errors and torques of a simulated robot; facts: from `log_facts`."""
    to = console()
    to.print(f"{found.robot.name}: {facts['rows']} rows at {facts['rate']:g} Hz under {found.controller}")
    limit = found.robot.limit("effort")
    head = ["joint", "tracking error, RMS", "torque, RMS", "torque, peak", "limit"]
    to.print(table(head, [(name, f"{one['tracking_rms']:.3g}", f"{one['torque_rms']:.3g}", f"{one['torque_peak']:.3g}",
                           "-" if limit[j] == float("inf") else f"{limit[j]:g}")
                          for j, (name, one) in enumerate(facts["joints"].items())], numbers=head[1:]))
    for note in found.notes:
        to.print(f"Note: {note}.", markup=False)
    print_outputs(written)
