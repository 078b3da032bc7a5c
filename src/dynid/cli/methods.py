"""`dynid methods`: the recommended methods, or all methods with their requirements and results."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.output import Json, console, print_json, table
from dynid.output_fields import map_of, record

# Recommended use of each method, the default first. docs/howto/method.md gives the same advice with reasons.
RECOMMENDED = {
    "auto": "default: best in cross-validation",
    "pc-wls": "all link inertias, physically consistent",
    "pc-ridge": "short logs or little excitation",
    "wls": "base parameters from the data alone",
    "irls": "outliers or contacts in the log",
    "pc-irls": "outliers, physically consistent",
    "ml": "torque noise correlated between joints",
    "iv": "noisy positions, known controller",
    "didim": "very noisy velocities, known controller",
    "sls": "unknown shape of friction",
    "rls": "one update per sample",
    "ols": "textbook reference",
}


_LISTED_METHOD = record("ListedMethod", title=str, needs=list[str], gives=list[str], depends_on=list[str],
                        options=list[str], recommended_for=str | None)
OUTPUT = record("Methods", methods=map_of(_LISTED_METHOD))


def command(every: Annotated[bool, typer.Option("--all", help="List all methods.")] = False,
            json: Json = False) -> None:
    """List the recommended methods and when to use them; with --all every method with its requirements and results."""
    from dynid.estimate import methods

    found = methods()
    if json:
        print_json({"methods": {name: {
            "title": one.title, "needs": sorted(one.needs), "gives": sorted(one.gives),
            "depends_on": sorted(one.depends_on), "options": list(one.options),
            "recommended_for": RECOMMENDED.get(name)}
            for name, one in found.items()}})
        return
    if not every:
        console().print(table(["method", "description", "use it for"], [
            (name, found[name].title, words) for name, words in RECOMMENDED.items()]))
        console().print(f"Without --method, dynid uses auto. {len(found) - len(RECOMMENDED)} more: dynid methods --all")
        return
    console().print(table(["method", "description", "needs", "gives"], [
        (name, one.title, ", ".join(sorted(one.needs - {"exact", "rigid"})), ", ".join(sorted(one.gives)))
        for name, one in found.items()]))
    console().print("needs: data = reads all rows again; excerpt = reads some rows; blocks = several blocks of time; "
                    "shape = a term with free shape; torques = equations of torques; joints = one equation per joint.\n"
                    "gives, with base parameters: theta = all standard parameters; shape = shape parameters.")
