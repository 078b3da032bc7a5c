"""`dynid demo`: the whole job on a built-in robot, ends with a report to open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.output import Json, console, print_json, progress, table


def command(
    output: Annotated[Path, typer.Option("-o", "--output",
                                         help="Folder for logs, run file and report.")] = Path("dynid-demo"),
    seed: Annotated[int, typer.Option(help="Another seed makes other motions and other noise.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier demonstration in that folder.")] = False,
    json: Json = False,
) -> None:
    """Do the whole job on a built-in robot: design a motion, log it, identify, validate, report."""
    import numpy as np

    from dynid.runs.comparison import comparison_facts
    from dynid.runs.demo import METHODS, ROBOT, demo

    with progress("demo") as tell:
        found = demo(output, tell, seed=seed, force=force)
    estimates = {estimate.method: estimate for estimate in found.compared.estimates}
    inside = {name: float(np.mean(np.abs(one.values - found.truth)[one.identified] < 3 * one.std[one.identified]))
              for name, one in estimates.items()}
    facts = comparison_facts(found.compared)
    if json:
        print_json({**facts, "within_three_deviations": inside, "outputs": {"report": str(found.report)}})
        return
    to = console()
    to.print(f"{ROBOT} moved for {found.compared.run.samples[0].t[-1]:.0f} s, its torques and encoder noisy; "
             f"{len(found.truth)} base parameters identified, validated on another motion.", markup=False)
    head = ["method", "fit, %", "validation, %", "truth within 3 deviations", "s"]
    to.print(table(head, [(name, f"{facts['methods'][name]['relative_error']:.2f}",
                           f"{facts['methods'][name]['validation'][0]:.2f}", f"{100 * inside[name]:.0f} %",
                           f"{facts['methods'][name]['elapsed_s']:.2f}") for name in METHODS], numbers=head[1:]))
    to.print(found.compared.run.verdict.headline, markup=False)
    to.print(f"Report: {found.report}", markup=False)
