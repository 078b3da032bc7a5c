"""`dynid compare`: several methods on the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.identify import Assignments
from dynid.cli.output import Json, console, print_json, progress, table


def command(
    source: Annotated[str, typer.Argument(metavar="RUN.toml|ROBOT", show_default=False,
                                          help="A run file; or a robot, followed by logs.")],
    logs: Annotated[list[str] | None, typer.Argument(metavar="LOG...", show_default=False,
                                                     help="Logs, when no run file is given.")] = None,
    methods: Annotated[str, typer.Option(metavar="NAME,...", help="The methods to compare.")] = "ols,wls,irls,tls",
    mapping: Annotated[Path | None, typer.Option(help="TOML file with a log table.", show_default=False)] = None,
    assignments: Assignments = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Write the comparison as one HTML report here.")] = None,
    json: Json = False,
) -> None:
    """Run several methods on the same data and set them side by side."""
    from dynid.cli.identify import mapping_table, settings_of
    from dynid.report import write_report
    from dynid.run.comparison import compare, comparison_facts, comparison_report

    names = [name.strip() for name in methods.split(",") if name.strip()]
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
    head = ["method", "fit, %", "validation, %", "consistent", "s"]
    rows = [(name, f"{one['relative_error']:.2f}", ", ".join(f"{x:.2f}" for x in one["validation"]) or "-",
             "-" if one["consistent"] is None else "yes" if one["consistent"] else "no", f"{one['elapsed_s']:.2f}")
            for name, one in facts["methods"].items()]
    console().print(table(head, rows, numbers=["fit, %", "s"]))
    head = ["base parameter", *names]
    console().print(table(head, [(name, *(f"{values[method]['value']:.5g}" + (
        f" ± {values[method]['std']:.1g}" if values[method]["std"] is not None else "") for method in names))
        for name, values in facts["parameters"].items()], numbers=names))
    if output is not None:
        console().print(f"report: {output}", markup=False)
