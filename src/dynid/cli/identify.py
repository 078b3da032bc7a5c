"""`dynid identify`: parameters with standard errors, a verdict and a report from a robot and logs."""

# Without postponed annotations, whose text typer would compile again in each run.
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli import options
from dynid.cli.output import Json, print_json, show_progress, typed_command
from dynid.errors import DynidError

NOT_USABLE = 3  # exit code of --strict if the model is not usable; 1 and 2 are errors


def command(
    source: Annotated[str, typer.Argument(metavar="RUN.toml|ROBOT", show_default=False,
                                          help="A run file; or a URDF, an MJCF, a robot TOML file or the name of a "
                                               "built-in robot, followed by logs.")],
    logs: Annotated[list[str] | None, typer.Argument(
        metavar="LOG...", show_default=False, help="Logs, folders or patterns, if no run file is given.")] = None,
    method: Annotated[str, typer.Option(help="Estimation method. Default: auto. See `dynid methods`.",
                                         show_default="auto")] = "",
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction terms of every joint, comma-separated (viscous, coulomb, "
                                               "offset, ...), or none. Default: auto (chosen per joint).")] = "",
    rotor: Annotated[bool, typer.Option("--rotor", help="Identify reflected rotor inertias as well.")] = False,
    essential: Annotated[str, typer.Option(metavar="RULE", show_default=False,
                                           help="Remove insignificant parameters by a rule: standard-error, ratio, "
                                                "f-test, smallest, r or singular. For methods of base "
                                                "parameters (wls, iv, sls, ...).")] = "",
    mapping: options.LogMapping = None,
    cutoff: options.Cutoff = None,
    equations: Annotated[str, typer.Option(help="Equations: torque; or kernel, products, power, "
                                                "energy (without accelerations).", show_default="torque")] = "",
    known: Annotated[list[str] | None, typer.Option("--known", metavar="NAME=VALUE[+-STD]", show_default=False,
                                                    help="Known standard parameter, such as M3=1.2 or "
                                                         "Ia1=0.1+-0.01; may be repeated.")] = None,
    prior: Annotated[str | None, typer.Option(metavar="RESULT", show_default=False,
                                              help="Folder of an earlier result, such as that of a fleet, "
                                                   "whose parameters and covariance are used as a prior.")] = None,
    validate: Annotated[list[str] | None, typer.Option("--validate", metavar="LOG", show_default=False,
                                                       help="A log for validation; may be repeated.")] = None,
    start: options.Start = None,
    stop: options.Stop = None,
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z|estimate", show_default=False,
                                         help="Gravity in the base frame, m/s^2, or estimate (its direction "
                                              "from the logs). Default: that of the robot.")] = "",
    only: options.Only = "",
    lock: options.Lock = None,
    fixed_base: options.FixedBase = None,
    no_simulation: options.NoSimulation = False,
    horizon: options.Horizon = None,
    assignments: options.Assignments = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for the results. Default: write nothing.")] = None,
    code: Annotated[str, typer.Option(metavar="LANGUAGE,...", show_default=False,
                                      help="Also write the identified model as functions for a controller: c, "
                                           "python, python-plain, julia, latex, cuda, jax, torch, rust.")] = "",
    workers: Annotated[int | None, typer.Option(min=1, show_default=False,
                                                help="Number of processes that read the logs. The result does not "
                                                     "depend on this number.")] = None,
    scheduler: options.Scheduler = None,
    tls: options.Tls = "",
    folds: Annotated[Path | None, typer.Option(metavar="FOLDER", show_default=False,
                                               help="Cache folder for compressed logs: later runs read only "
                                                    "new logs.")] = None,
    force: options.ForceResult = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 3 if the model is graded not usable.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print all parameters and findings, not only one "
                                                      "screen.")] = False,
    trust: options.Trust = False,
    json: Json = False,
) -> None:
    """Identify a robot from its logs: parameters with standard errors, a verdict, and a report."""
    from dynid.estimate.export import WrittenFile
    from dynid.runs import run
    from dynid.runs.arguments import known_table, lock_table, log_table, run_settings
    from dynid.runs.results import check_output, facts, save
    from dynid.workers import Workers

    chosen = run_settings(source, logs or [], {
        "method": method or None, "validate_on": validate or None,
        "model": {"friction": options.words(friction) or None, "rotor": rotor or None},
        "log": log_table(mapping, start, stop), "prepare": {"cutoff": cutoff, "equations": equations or None},
        "known": known_table(known or []), "prior": prior,
        "gravity": gravity if gravity == "estimate" else options.numbers(gravity, "--gravity", "X,Y,Z"),
        "only": options.words(only) or None, "lock": lock_table(lock or []), "fixed_base": fixed_base,
        "simulation": options.simulation_table(no_simulation, horizon), "output": {"code": options.words(code) or None},
        "essential": {"rule": essential or None}},
        assignments or [], trust=trust)
    if code and output is None:
        raise DynidError("--code writes into the result folder, so name that folder: -o FOLDER")
    if output is not None:
        check_output(output, force)
    with show_progress("identify") as progress:
        result = run(chosen, progress, workers=Workers(workers or 1, scheduler, options.tls_files(tls)), store=folds)
        written, notes, files = {}, list[str](), list[WrittenFile]()
        if output is not None:
            progress("writing the results")
            written = save(result, output, typed_command(), force=force, add_note=notes.append,
                           add_file=files.append)
    if json:
        print_json({**facts(result, *files), "outputs": written})
    else:
        from dynid.cli.tables import print_run

        print_run(result, written, full, notes, *files)
    if strict and result.verdict.grade == "not usable":
        raise typer.Exit(NOT_USABLE)
