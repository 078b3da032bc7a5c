"""`dynid identify`: from a robot and logs to parameters with deviations, a verdict and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.options import (
    Assignments,
    Horizon,
    Lock,
    NoSimulation,
    Only,
    Scheduler,
    Start,
    Stop,
    Tls,
    Trust,
    numbers,
    simulation_table,
    tls_files,
    words,
)
from dynid.cli.output import Json, print_json, progress, typed_command
from dynid.errors import DynidError

NOT_USABLE = 3  # exit code of --strict for a model that is not usable; 1 and 2 are errors


def command(
    source: Annotated[str, typer.Argument(metavar="RUN.toml|ROBOT", show_default=False,
                                          help="A run file; or a URDF, a robot TOML or a built-in name.")],
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", show_default=False,
                                                     help="Logs, folders or patterns to identify from, when no "
                                                          "run file is given.")] = None,
    method: Annotated[str, typer.Option(help="Which method; `dynid methods` lists them.",
                                         show_default="auto")] = "",
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction at every joint: viscous, coulomb, offset, ..., or none; "
                                               "auto, as where none is named: chosen for each.")] = "",
    rotor: Annotated[bool, typer.Option("--rotor", help="Identify reflected rotor inertias too.")] = False,
    essential: Annotated[str, typer.Option(metavar="RULE", show_default=False,
                                           help="Leave out parameters that hardly matter, by deviation, ratio, f-test, "
                                                "smallest, r or singular; for wls, iv, sls and others of base "
                                                "parameters.")] = "",
    mapping: Annotated[Path | None, typer.Option(help="TOML file whose log table says how to read the logs.",
                                                 show_default=False)] = None,
    cutoff: Annotated[float | None, typer.Option(help="Low-pass cut-off, Hz; without it, chosen from the data.",
                                                 show_default=False)] = None,
    equations: Annotated[str, typer.Option(help="What rows are made of: torque, or without accelerations kernel, power "
                                                "or energy.", show_default="torque")] = "",
    known: Annotated[list[str] | None, typer.Option("--known", metavar="NAME=VALUE[+-STD]", show_default=False,
                                                    help="A standard parameter whose value is known, such as M3=1.2 or "
                                                         "Ia1=0.1+-0.01; may be repeated.")] = None,
    prior: Annotated[str | None, typer.Option(metavar="RESULT", show_default=False,
                                              help="Folder of an earlier result, such as a fleet's, whose parameters "
                                                   "with their deviations stand beside the data.")] = None,
    validate: Annotated[list[str] | None, typer.Option("--validate", metavar="LOG", show_default=False,
                                                       help="A log to try the result on; may be repeated.")] = None,
    start: Start = None,
    stop: Stop = None,
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z|estimate", show_default=False,
                                         help="Gravity in the base frame, m/s^2, instead of the robot's own; "
                                              "'estimate' finds its direction from the logs.")] = "",
    only: Only = "",
    lock: Lock = None,
    no_simulation: NoSimulation = False,
    horizon: Horizon = None,
    assignments: Assignments = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for the results; without it nothing is written.")] = None,
    code: Annotated[str, typer.Option(metavar="LANGUAGE,...", show_default=False,
                                      help="Write the identified model as functions for a controller beside the "
                                           "results: c, python, python-plain, julia, latex.")] = "",
    workers: Annotated[int | None, typer.Option(min=1, show_default=False,
                                                help="Processes that read and compress the logs. The result is the "
                                                     "same for any number.")] = None,
    scheduler: Scheduler = None,
    tls: Tls = "",
    folds: Annotated[Path | None, typer.Option(metavar="FOLDER", show_default=False,
                                               help="Folder in which compressed logs are kept: with many logs, the "
                                                    "next run reads only new ones.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier result in that folder.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 3 if the model is graded not usable.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print all parameters and findings, not one screen.")] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Identify a robot from its logs: parameters, deviations, a verdict in words, and a report."""
    from dynid.cli.tables import print_run
    from dynid.runs import run
    from dynid.runs.arguments import known_table, lock_table, log_table, run_settings
    from dynid.runs.results import check_output, facts, save
    from dynid.workers import Workers

    chosen = run_settings(source, logs or [], {
        "method": method or None, "validate_on": validate or None,
        "model": {"friction": words(friction) or None, "rotor": rotor or None},
        "log": log_table(mapping, start, stop), "prepare": {"cutoff": cutoff, "equations": equations or None},
        "known": known_table(known or []), "prior": prior,
        "gravity": gravity if gravity == "estimate" else numbers(gravity, "--gravity"),
        "only": words(only) or None, "lock": lock_table(lock or []),
        "simulation": simulation_table(no_simulation, horizon), "output": {"code": words(code) or None},
        "essential": {"rule": essential or None}},
        assignments or [], trust=trust)
    if code and output is None:
        raise DynidError("--code writes beside the results, so give their folder too: -o FOLDER")
    if output is not None:
        check_output(output, force)
    with progress("identify") as tell:
        result = run(chosen, tell, workers=Workers(workers or 1, scheduler, tls_files(tls)), store=folds)
        written, notes = {}, list[str]()
        if output is not None:
            tell("writing the results")
            written = save(result, output, typed_command(), force=force, tell=notes.append)
    if json:
        print_json({**facts(result), "outputs": written})
    else:
        print_run(result, written, full, notes)
    if strict and result.verdict.grade == "not usable":
        raise typer.Exit(NOT_USABLE)
