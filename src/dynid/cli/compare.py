"""`dynid compare`: several methods on the same data."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.identify import Assignments
from dynid.cli.output import Json, console, print_json, progress, table
from dynid.errors import DynidError

if TYPE_CHECKING:
    from dynid.study import Study

_METHODS, _STUDIED = "ols,wls,irls,tls", "wls,iv"


def command(
    source: Annotated[str, typer.Argument(metavar="RUN.toml|STUDY.toml|ROBOT", show_default=False,
                                          help="A run file; or a robot, followed by logs; with --monte-carlo a study, "
                                               "or a robot alone.")],
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", show_default=False,
                                                     help="Logs, when no run file is given.")] = None,
    methods: Annotated[str | None, typer.Option(
        metavar="NAME,...", help="The methods to compare.",
        show_default=f"{_METHODS}; with --monte-carlo those of the study, or {_STUDIED}")] = None,
    mapping: Annotated[Path | None, typer.Option(help="TOML file with a log table.", show_default=False)] = None,
    assignments: Assignments = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Write the comparison as one HTML report here.")] = None,
    monte_carlo: Annotated[bool, typer.Option("--monte-carlo", help="On many simulated logs whose truth is known: "
                                              "bias, spread, coverage, time, share converged.")] = False,
    repetitions: Annotated[int | None, typer.Option(min=2, show_default="those of the study, or 100",
                                                    help="Logs at each noise level.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, show_default="that of the study, or 0",
                                             help="All that is random depends on it.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, show_default="one a core", help="Processes.")] = None,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", show_default=False,
                                                  help="Run on the Dask cluster of this scheduler.")] = None,
    json: Json = False,
) -> None:
    """Run several methods on the same data, or on many simulated logs, and set them side by side."""
    if monte_carlo:
        if logs or mapping is not None or assignments:
            raise DynidError("with --monte-carlo the logs are simulated: give a study or a robot, and nothing to read")
        _study(source, methods, repetitions, seed, workers, scheduler, output, json)
        return
    if repetitions is not None or seed is not None or workers is not None or scheduler is not None:
        raise DynidError("--repetitions, --seed, --workers and --scheduler belong to --monte-carlo")
    from dynid.cli.identify import mapping_table, settings_of
    from dynid.report import write_report
    from dynid.runs.comparison import compare, comparison_facts, comparison_report

    names = [name.strip() for name in (methods or _METHODS).split(",") if name.strip()]
    settings = settings_of(source, logs or [], {"log": mapping_table(mapping)}, assignments or [])
    with progress("compare") as tell:
        result = compare(settings, names, tell)
        if output is not None:
            tell("writing the report")
            write_report(comparison_report(result), output)
    facts = comparison_facts(result)
    if json:
        print_json({**facts, "outputs": {} if output is None else {"report": str(output)}})
        return
    head = ["method", "fit, %", "validation, %", "simulated position, %", "consistent", "s"]
    rows = [(name, f"{one['relative_error']:.2f}", ", ".join(f"{x:.2f}" for x in one["validation"]) or "-",
             ", ".join(map(_simulated, one["simulation"])) or "-",
             "-" if one["consistent"] is None else "yes" if one["consistent"] else "no", f"{one['elapsed_s']:.2f}")
            for name, one in facts["methods"].items()]
    console().print(table(head, rows, numbers=["fit, %", "s"]))
    head = ["base parameter", *names]
    console().print(table(head, [(name, *(f"{values[method]['value']:.5g}" + (
        f" ± {values[method]['std']:.1g}" if values[method]["std"] is not None else "") for method in names))
        for name, values in facts["parameters"].items()], numbers=names))
    if output is not None:
        console().print(f"report: {output}", markup=False)


def _simulated(check: dict[str, Any]) -> str:
    """The position error of one simulated log, and how much of it was reached if not all."""
    if check["position_error"] is None:
        return "not possible" if not check["windows"] else "-"
    part = f" (reached {100 * check['reached']:.0f} %)" if check["reached"] < 1 else ""
    return f"{check['position_error']:.2f}{part}"


def _study(source: str, methods: str | None, repetitions: int | None, seed: int | None, workers: int | None,
           scheduler: str | None, output: Path | None, json: bool) -> None:
    from dynid.study import Study, run_study
    from dynid.study.page import write_study
    from dynid.study.result import UNBIASED

    names = [name.strip() for name in (methods or "").split(",") if name.strip()]
    changes = {"methods": names or None, "repetitions": repetitions, "seed": seed}
    study = _load(source, Study).changed(**{key: value for key, value in changes.items() if value is not None})
    with progress("compare") as tell:
        tell("preparing the virtual robot")
        result = run_study(study, workers, scheduler, lambda done, total: tell(f"{done} of {total} logs"))
        if output is not None:
            tell("writing the report")
            write_study(result, output, shlex.join(["dynid", *sys.argv[1:]]))
    if json:
        print_json({**result.to_dict(), "outputs": {} if output is None else {"report": str(output)}})
        return
    (head, *rows), (head_parameters, *parameters) = result.runs_table(), result.parameters_table()
    title = f"{result.robot}, {study.repetitions} logs a noise level"
    console().print(table(head, rows, numbers=head[1:], title=title))
    console().print(table(head_parameters, parameters, numbers=head_parameters[2:]))
    console().print(f"unbiased: bias below {UNBIASED:g} of the spread; of a method without bias, {study.repetitions} "
                    f"logs show {100 * result.unbiased_by_chance:.0f} % of the parameters so", markup=False)
    for one in result.scores:
        for sentence in list(dict.fromkeys(words for _, words in one.failures))[:3]:
            console().print(f"{one.label}, noise x {one.factor:g}: {sentence}", markup=False)
    if output is not None:
        console().print(f"report: {output}", markup=False)


def _load(source: str, kind: type[Study]) -> Study:
    """A study's file, or the default study of a robot. A robot may be a TOML file too: that has no 'robot' in it."""
    path = Path(source)
    if path.suffix == ".toml" and path.exists():
        try:
            is_study = "robot" in tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise DynidError(f"{path} is not a TOML file: {problem}") from None
        if is_study:
            return kind.load(path)
    return kind.of({"robot": source})
