"""`dynid actuators`: armature, friction, delay and drive parameters from positions and commands, without torques."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli.options import Assignments, ForceResult, LogMapping, Start, Stop, words
from dynid.cli.output import Json, console, print_json, saved, show_progress, table
from dynid.cli.screen import MAX_FINDINGS_PRINTED, Screen

if TYPE_CHECKING:
    from dynid.findings import Finding, Note
    from dynid.runs.actuators import FoundActuators


def command(
    source: Annotated[str, typer.Argument(metavar="RUN.toml|ROBOT", show_default=False,
                                          help="A run file with an \\[actuators] table; or a URDF, MJCF or robot TOML "
                                               "file; or a log, with --pendulum.")],
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", show_default=False,
                                                     help="Logs with measured and commanded positions.")] = None,
    law: Annotated[str, typer.Option(help="Drive law: pd, pid, cascade, voltage or current.",
                                     show_default="pd")] = "",
    gain: Annotated[list[str] | None, typer.Option("--gain", metavar="NAME=VALUE", show_default=False,
                                                   help="Known parameter of the drive law, such as kp=20, kp=20,30,40 "
                                                        "(one per joint) or kp:knee=30; may be repeated. Parameters "
                                                        "that are not given are estimated.")] = None,
    friction: Annotated[str, typer.Option(help="Friction model, from m1 (Coulomb and viscous) to m6 (quadratic in the "
                                               "load), or auto (chosen from the data).", show_default="auto")] = "",
    delay: Annotated[float | None, typer.Option(metavar="SECONDS", show_default="estimated",
                                                help="Delay of the commands, s.")] = None,
    also: Annotated[str, typer.Option(metavar="NAME,...", show_default=False,
                                      help="Further parameters to estimate: bias, backlash, torque_limit, "
                                           "current_limit, link_scale, stribeck_shape.")] = "",
    pendulum: Annotated[str, typer.Option(metavar="mass=KG,length=M", show_default=False,
                                          help="A single actuator with a pendulum of known mass and length, in place "
                                               "of a robot; arm_mass=KG for its rod.")] = "",
    mapping: LogMapping = None,
    start: Start = None,
    stop: Stop = None,
    assignments: Assignments = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for the estimate and its report.")] = None,
    force: ForceResult = False,
    full: Annotated[bool, typer.Option("--full", help="Print all intervals, friction models and findings, not only "
                                                      "one screen.")] = False,
    json: Json = False,
) -> None:
    """Identify actuators without torque sensors: armature, friction, delay and drive parameters from positions."""
    from dynid.files import free_paths
    from dynid.runs.actuators import FILES, actuator_settings, find_actuators, number_table, save_actuators
    from dynid.runs.arguments import log_table

    given = {"law": law or None, "gains": number_table(gain or [], "--gain"), "friction": friction or None,
             "delay": delay, "also": words(also) or None, "log": log_table(mapping, start, stop),
             "pendulum": number_table(words(pendulum), "--pendulum")}
    settings = actuator_settings(source, logs or [], given, assignments or [])
    if output is not None:
        free_paths(output, FILES, force)
    with show_progress("actuators") as progress:
        found = find_actuators(settings, progress)
        written = saved(save_actuators, found, output, force, progress)
    if json:
        print_json({**found.to_dict(), "outputs": written})
    else:
        _print(found, written, full)


def _print(found: FoundActuators, written: dict[str, str], full: bool) -> None:
    """Print the simulation error, the parameters and the most important findings; with `full` everything."""
    from dynid.cli.plain_console import to_copy
    from dynid.runs.arguments import command_line

    to, estimate = Screen(console()), found.estimate
    fitted = [one for one in estimate.parameters if not one.is_given]
    trivial = estimate.delayed_command
    to.print(f"Not usable: {estimate.unusable}." if estimate.unusable else
             f"Simulated positions have a mean error of {1e3 * estimate.mean_error:.3g} mrad ({trivial.text}: "
             f"{1e3 * trivial.mean_error:.3g} mrad).")
    to.print(f"{sum(one.identified for one in fitted)} of {len(fitted)} "
             f"parameters are determined. Drive law: {estimate.law}; friction: {estimate.friction}.")
    one_joint = len({one.joint for one in fitted}) < 2
    if full or one_joint:
        to.print(table(["joint", "parameter", "value", "95 %", ""], estimate.rows(), numbers=["value", "95 %"],
                       title=f"actuators of {estimate.robot}"))
    else:
        head = list(dict.fromkeys(f"{one.name},\n{one.unit}" if one.unit else one.name for one in fitted))
        to.print(table(["joint", *head], estimate.joint_rows(), numbers=head))
        to.print("Values in brackets are not determined by these data.")
    if estimate.comparison and (full or one_joint):
        rows = [(one.model.upper(), one.title, f"{1e3 * one.error:.4g}", f"{one.better:.2g}",
                 "chosen" if one.chosen else "") for one in estimate.comparison]
        to.print(table(["friction", "", "cross-validation, mrad", "improvement, sigma", " "], rows,
                       numbers=["cross-validation, mrad", "improvement, sigma"]))
    texts: list[Finding | Note] = [*estimate.findings, *estimate.notes]
    firsts = texts if full else list({one.code: one for one in reversed(texts)}.values())[::-1][:MAX_FINDINGS_PRINTED]
    for one in firsts:
        to.print(f"- {one.text}")
    if len(texts) > len(firsts):
        where = "in report.html, or with --full" if written else "with --full"
        to.print(f"  {len(texts) - len(firsts)} more: {where}")
    for what, path in written.items():
        to.print(f"{what}: {path}")
    if written and not estimate.unusable:
        is_open = estimate.posterior is not None and bool(estimate.posterior.undetermined())
        keeps = ", with the values of the robot file for those that are not determined" if is_open else ""
        to.print(f"Write them for a simulator{keeps}:")
        to.print(to_copy("  " + command_line(
            "export", str(Path(written["actuators"]).parent), "--for", "mjcf", "-o", "robot.xml",
            *(["--undetermined", "file"] if is_open else []))))
    elif not written:
        to.print("Nothing was written: add -o FOLDER to save parameters and report.")
