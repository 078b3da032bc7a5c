"""`dynid identify`: from a robot and logs to parameters with deviations, a verdict and a report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.output import Json, console, print_json, progress, table
from dynid.errors import DynidError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dynid.runs import Run, RunSettings
    from dynid.validate import Reconstruction, SimulationCheck

Assignments = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", show_default=False,
                                                       help="Any setting of a run file, such as prepare.cutoff=8 or "
                                                            "options.strength=0.1; may be repeated.")]

NoSimulation = Annotated[bool, typer.Option("--no-simulation", help="Leave out validation by simulation.")]
Horizon = Annotated[float | None, typer.Option(metavar="SECONDS", show_default="that of the run, or 0.5",
                                               help="Simulate the log's torques for so long before starting anew from "
                                                    "the measured motion.")]


def command(
    source: Annotated[str, typer.Argument(metavar="RUN.toml|ROBOT", show_default=False,
                                          help="A run file; or a URDF, a robot TOML or a built-in name.")],
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", show_default=False,
                                                     help="Logs to identify from, when no run file is given.")] = None,
    method: Annotated[str, typer.Option(help="Which method; `dynid methods` lists them.", show_default="wls")] = "",
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction at every joint: viscous, coulomb, offset, ...")] = "",
    rotor: Annotated[bool, typer.Option("--rotor", help="Identify reflected rotor inertias too.")] = False,
    mapping: Annotated[Path | None, typer.Option(help="TOML file whose log table says how to read the logs.",
                                                 show_default=False)] = None,
    cutoff: Annotated[float | None, typer.Option(help="Low-pass cut-off, Hz; without it, chosen from the data.",
                                                 show_default=False)] = None,
    validate: Annotated[list[str] | None, typer.Option("--validate", metavar="LOG", show_default=False,
                                                       help="A log to try the result on; may be repeated.")] = None,
    no_simulation: NoSimulation = False,
    horizon: Horizon = None,
    assignments: Assignments = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for the results; without it nothing is written.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier result in that folder.")] = False,
    json: Json = False,
) -> None:
    """Identify a robot from its logs: parameters, deviations, a verdict in words, and a report."""
    from dynid.runs import run
    from dynid.runs.results import facts, save

    chosen = settings_of(source, logs or [], {
        "method": method or None, "validate_on": validate or None,
        "model": {"friction": _list(friction) or None, "rotor": rotor or None},
        "log": mapping_table(mapping), "prepare": {"cutoff": cutoff},
        "simulation": simulation_table(no_simulation, horizon)}, assignments or [])
    if output is not None and (output / "parameters.toml").exists() and not force:
        raise DynidError(f"{output} already holds a result; choose another folder or say --force")
    with progress("identify") as tell:
        result = run(chosen, tell)
        written = {}
        if output is not None:
            tell("writing the results")
            written = save(result, output, shlex.join(["dynid", *sys.argv[1:]]), force=force)
    if json:
        print_json({**facts(result), "outputs": written})
    else:
        show(result, written)


def settings_of(source: str, logs: list[str], given: dict[str, Any], assignments: list[str]) -> RunSettings:
    """Settings from a run file or from arguments, with what else was given on top."""
    from dynid.runs import RunSettings

    if logs or not _is_run_file(source):
        if not logs:
            raise DynidError(f"'{source}' is a robot, so give the logs to identify it from, or a run file")
        values: dict[str, Any] = {"robot": source, "logs": logs}
    else:
        values = RunSettings.load(source).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    for key, value in given.items():
        if isinstance(value, dict):
            kept = {name: item for name, item in value.items() if item is not None}
            if kept:
                values[key] = {**values.get(key, {}), **kept}
        elif value is not None:
            values[key] = value
    for assignment in assignments:
        _assign(values, assignment)
    return RunSettings.of(values, source)


def _is_run_file(source: str) -> bool:
    import tomllib

    if not source.endswith(".toml"):
        return False
    try:
        return "robot" in tomllib.loads(Path(source).read_text(encoding="utf-8"))
    except OSError as problem:
        raise DynidError(f"cannot read {source}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise DynidError(f"{source} is not a TOML file: {problem}") from None


def mapping_table(path: Path | None) -> dict[str, Any]:
    """The [log] table of a mapping file."""
    if path is None:
        return {}
    from dynid.recording import mapping

    return mapping.Mapping.load(path).model_dump(mode="json", exclude_unset=True)


def simulation_table(left_out: bool, horizon: float | None) -> dict[str, Any]:
    """What the command line says of the [simulation] table, None where it says nothing."""
    return {"run": False if left_out else None, "horizon": horizon}


def _assign(values: dict[str, Any], assignment: str) -> None:
    """a.b=value into nested settings; the value as TOML writes it, or as plain text."""
    import tomllib

    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise DynidError(f"--set takes KEY=VALUE such as prepare.cutoff=8, got '{assignment}'")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text
    *path, last = key.strip().split(".")
    for part in path:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise DynidError(f"--set {assignment}: '{part}' is not a table of settings")
    values[last] = value


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


# -- for people --------------------------------------------------------------------------------------
def show(result: Run, written: dict[str, str]) -> None:
    """Print the verdict, the parameters and where things are."""
    to, estimate = console(), result.estimate
    to.print(f"[bold]{result.robot.name}[/bold] by {estimate.method}, {result.seconds:.1f} s")
    to.print(result.verdict.headline, markup=False)
    to.print()
    rows = []
    for name, value, std, relative, known, expression in zip(
            estimate.names, estimate.values, estimate.std, estimate.relative_std, estimate.identified,
            estimate.base.expressions, strict=True):
        if known:
            share = f"{relative:.1f}" if relative < 1e4 else "-"
            rows.append((name, f"{value:.5g}", f"{std:.2g}", share, expression))
        else:
            rows.append((name, "not excited", "", "", expression))
    to.print(table(["name", "value", "deviation", "%", "is"], rows, numbers=["value", "deviation", "%"],
                   title=f"{len(rows)} base parameters"))
    others = {f"validation on {Path(one.source).name}": one for one in result.validations}
    to.print(error_table({"fit": result.reconstruction, **others}, result.robot.joint_names))
    show_simulations(result.simulations, result.robot.joint_names)
    for finding in result.verdict.findings:
        to.print(f"- {finding.text}", markup=False)
    for name, path in written.items():
        to.print(f"{name}: {path}", markup=False)


def percent(error: float | None, digits: int = 1) -> str:
    """A relative error for a table; a joint without torque has none."""
    return "-" if error is None else f"{error:.{digits}f}"


def error_table(fits: Mapping[str, Reconstruction], joints: Sequence[str]) -> Any:
    """Relative errors by joint, of each reconstruction by name."""
    return by_joint("relative error, %", joints, {
        name: [percent(one.total.relative_error, 2), *(percent(fit.relative_error) for fit in one.joints)]
        for name, one in fits.items()})


def by_joint(what: str, joints: Sequence[str], columns: Mapping[str, Sequence[str]]) -> Any:
    """A table with a row for all joints and one for each; columns: cells of those rows by name."""
    head = [what, *columns]
    return table(head, list(zip(["all", *joints], *columns.values(), strict=True)), numbers=head[1:])


def show_simulations(checks: Sequence[SimulationCheck], joints: Sequence[str]) -> None:
    """Print how far simulated positions are off, in percent of each joint's motion, and what could not be simulated."""
    to = console()
    done = [(one, one.log) for one in checks if one.log is not None]
    if done:
        columns = {}
        for one, log in done:
            name = f"{Path(one.source).name}, " + (f"{one.horizon:g} s" if one.horizon else "closed loop")
            columns[name] = [*map(_short, (log.total_error, *log.position_error))]
            if one.mode == "closed-loop":
                columns[f"{name}: torque"] = [*map(_short, (log.torque_error, *log.torque_error_per_joint))]
        to.print(by_joint("simulated position, %", joints, columns))
    said = [f"{len(log.windows)} of {log.possible} windows of {Path(one.source).name} were simulated"
            for one, log in done if len(log.windows) < log.possible and not one.reason]
    said += [note.text for one in checks for note in one.notes] + [one.reason.text for one in checks if one.reason]
    for sentence in dict.fromkeys(said):
        to.print(f"Simulation: {sentence}.", markup=False)


def _short(error: float) -> str:
    """Three digits; a joint that stands still has no error in percent of its motion."""
    return "-" if error != error else f"{error:.3g}" if error < 1000 else f"{error:.0f}"
