"""`dynid plugins`: list of the extensions of dynid in other installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli.output import Json, console, print_json, show_progress, table
from dynid.output_fields import array_of, record

if TYPE_CHECKING:
    from dynid.plugins import Plugin


_LISTED_PLUGIN = record("ListedPlugin", group=str, name=str, package=str, reference=str, checked=bool,
                        problem=str | None)
OUTPUT = record("Plugins", plugins=array_of(_LISTED_PLUGIN))


def command(
    check: Annotated[bool, typer.Option("--check", help="Run dynid's contract checks on each plugin.")] = False,
    json: Json = False,
) -> None:
    """List robots, terms, methods, log presets, drive laws and report sections from other installed packages; exit code
    1 if one cannot be used."""
    from dynid.plugins import list_plugins

    found = list_plugins()
    problems = {(one.group, one.name): one.problem for one in found}
    if check:
        with show_progress("plugins") as progress:
            for one in found:
                progress(f"{one.group} {one.name}")
                if one.problem is None:
                    problems[one.group, one.name] = _failure(one)
    if json:
        print_json({"plugins": [{"group": one.group, "name": one.name, "package": one.package,
                                 "reference": one.reference, "checked": check,
                                 "problem": problems[one.group, one.name]} for one in found]})
    elif not found:
        console().print("No installed package declares a plugin; docs/howto/plugin.md shows how to write one.")
    else:
        passed = "passes the checks" if check else "loads"
        console().print(table(["group", "name", "package", "state"], [
            (one.group, one.name, one.package, problems[one.group, one.name] or passed) for one in found]))
    if any(problem is not None for problem in problems.values()):
        raise typer.Exit(1)


def _failure(plugin: Plugin) -> str | None:
    """Return why a plugin fails the contract of its group, or None if it passes."""
    from dynid.errors import DynidError
    from dynid.validate.contract.plugin_checks import check_plugin

    try:
        check_plugin(plugin.group, plugin.name)
    except DynidError as problem:
        return str(problem)
    return None
