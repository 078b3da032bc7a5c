"""`dynid compare`: comparison of several methods on the same data, or of two earlier results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli import options
from dynid.cli.output import Json, console, print_json, print_outputs, show_progress, table, typed_command
from dynid.errors import DynidError
from dynid.files import try_file

if TYPE_CHECKING:
    from dynid.runs.comparison import ComparedResults


_METHODS, _STUDIED = "ols,wls,irls,tls", "wls,iv"
_MOST_COMPARED = 15  # parameters that fit on one screen


def command(
    source: Annotated[str, typer.Argument(metavar="RUN.toml|STUDY.toml|ROBOT|RESULT", show_default=False,
                                          help="A run file; or a robot, followed by logs; with --monte-carlo a "
                                               "study or a robot; or two result folders.")],
    logs: Annotated[list[str] | None, typer.Argument(metavar="[RESULT] LOG...", show_default=False,
                                                     help="Logs, if no run file is given; for two results, "
                                                          "the logs on which their torques are compared.")] = None,
    methods: Annotated[str | None, typer.Option(
        metavar="NAME,...", help="The methods to compare.",
        show_default=f"{_METHODS}; with --monte-carlo those of the study, or {_STUDIED}")] = None,
    mapping: options.LogMapping = None,
    start: options.Start = None,
    stop: options.Stop = None,
    only: options.Only = "",
    lock: options.Lock = None,
    fixed_base: options.FixedBase = None,
    assignments: options.Assignments = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="HTML file for a report on the comparison.")] = None,
    monte_carlo: Annotated[bool, typer.Option("--monte-carlo", help="Monte Carlo study on simulated logs "
                                                                    "with known parameters: bias, standard "
                                                                    "deviation, coverage, time, convergence.")] = False,
    repetitions: Annotated[int | None, typer.Option(min=2, show_default="of the study, or 100",
                                                    help="Number of simulated logs per noise level.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, show_default="of the study, or 0",
                                             help="Seed of all random numbers.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, show_default="one per core",
                                               help="Number of processes of a Monte Carlo study.")] = None,
    scheduler: options.Scheduler = None,
    tls: options.Tls = "",
    trust: options.Trust = False,
    json: Json = False,
) -> None:
    """Compare several methods on the same data or on many simulated logs, or compare two earlier results."""
    if Path(source).is_dir():
        if monte_carlo or methods or only or lock or assignments or output is not None:
            raise DynidError("to compare two results, give only their folders, and logs on which their torques are to "
                             "be compared", code="conflicting-options")
        _results(source, logs or [], (mapping, start, stop), trust, json)
        return
    if output is not None:
        try_file(output)
    if monte_carlo:
        if logs or mapping is not None or assignments or start is not None or stop is not None or only or lock:
            raise DynidError("with --monte-carlo the logs are simulated: give a study or a robot, without logs and "
                             "without options for logs or locked joints", code="conflicting-options")
        changes = {"methods": options.words(methods or "") or None, "repetitions": repetitions, "seed": seed}
        _study(source, changes, (workers, scheduler, options.tls_files(tls)), output, json)
        return
    if repetitions is not None or seed is not None or workers is not None or scheduler is not None:
        raise DynidError("--repetitions, --seed, --workers and --scheduler need --monte-carlo",
                         code="conflicting-options")
    from dynid.cli.tables import print_comparison, print_dropped
    from dynid.report import write_report
    from dynid.runs.arguments import lock_table, log_table, run_settings
    from dynid.runs.comparison import compare, comparison_facts, comparison_report

    settings = run_settings(source, logs or [], {
        "log": log_table(mapping, start, stop), "only": options.words(only) or None, "lock": lock_table(lock or []),
        "fixed_base": fixed_base},
        assignments or [], trust=trust)
    with show_progress("compare") as progress:
        result = compare(settings, options.words(methods or _METHODS), progress)
        if output is not None:
            progress("writing the report")
            write_report(comparison_report(result), output)
    facts, written = comparison_facts(result), _written(output)
    if json:
        print_json({**facts, "outputs": written})
    else:
        print_comparison(facts)
        print_dropped(result.run.logs)
        print_outputs(written)


def _results(first: str, others: list[str], reading: tuple[Path | None, float | None, float | None],
             trust: bool, json: bool) -> None:
    from dynid.runs.arguments import log_table
    from dynid.runs.comparison import compare_results

    if not others or not Path(others[0]).is_dir():
        raise DynidError(f"{first} is a result folder; give the folder of a second result for the comparison",
                         code="no-result")
    with show_progress("compare") as progress:
        found = compare_results(first, others[0], others[1:], log_table(*reading), progress, trust=trust)
    if json:
        print_json(found.to_dict())
    else:
        print_compared_results(found)


def _study(source: str, changes: dict[str, Any], where: tuple[int | None, str | None, tuple[str, str, str] | None],
           output: Path | None, json: bool) -> None:
    from dynid.cli.tables import print_study
    from dynid.study import run_study, study_settings
    from dynid.study.page import write_study

    study, written = study_settings(source, changes), _written(output)
    with show_progress("compare") as progress:
        progress("preparing the virtual robot")
        result = run_study(study, where[0], where[1], lambda done, total: progress(f"{done} of {total} logs"), where[2])
        if output is not None:
            progress("writing the report")
            write_study(result, output, typed_command())
    if json:
        print_json({**result.to_dict(), "outputs": written})
    else:
        print_study(result, study.repetitions)
        print_outputs(written)


def _written(output: Path | None) -> dict[str, str]:
    return {} if output is None else {"report": str(output)}


def print_compared_results(found: ComparedResults) -> None:
    """Print the parameters of two results that differ most, and the resulting difference in torque."""
    to, both = console(), found.comparison
    scores = both.z_scores
    order = sorted(range(len(both.names)), key=lambda k: -abs(scores[k]) if scores[k] == scores[k] else 0.0)
    rows = [(both.names[k], f"{both.values_a[k]:.4g} ± {both.std_a[k]:.1g}",
             f"{both.values_b[k]:.4g} ± {both.std_b[k]:.1g}", f"{both.difference[k]:+.3g}",
             f"{scores[k]:+.1f}" if scores[k] == scores[k] else "-") for k in order[:_MOST_COMPARED]]
    head = ["base parameter", "a", "b", "b - a", "in standard errors"]
    to.print(table(head, rows, numbers=head[1:], title=f"a: {found.result_a}, b: {found.result_b}"))
    if len(order) > len(rows):
        to.print(f"{len(order) - len(rows)} more parameters differ less; --json lists all")
    far = both.different
    to.print(f"{len(far)} of {len(both.names)} differ by more than three standard errors" + (
        "" if both.rms_z_score is None else f"; root mean square difference {both.rms_z_score:.2f} standard errors (1 "
                                          "expected from noise alone)"))
    for who, names in (("a", both.only_a), ("b", both.only_b)):
        if names:
            to.print(f"only in {who}: {', '.join(names)}", markup=False)
    for one in both.torques:
        per_joint = [(name, f"{rms:.3g}", f"{100.0 * rms / size:.2f}" if size > 0 else "-")
                for name, rms, size in zip(one.joints, one.rms, one.torque_rms, strict=True)]
        head = ["joint", "torque difference b - a, RMS", "of the torque, %"]
        to.print(table(head, per_joint, numbers=head[1:], title=f"on {one.source}"))
