"""`dynid extract`: full parameters out of base values, by global search inside bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dynid.cli.options import Trust
from dynid.cli.output import Json, console, print_json, progress, saved, table

if TYPE_CHECKING:
    from dynid.runs.extracted_sets import ExtractedSets

_MOST = 4  # reasons printed of one set


def command(
    source: Annotated[str, typer.Argument(metavar="RESULT|ROBOT", show_default=False,
                                          help="Folder of an earlier `dynid identify -o`; or a robot, with --base.")],
    bounds: Annotated[list[str] | None, typer.Option(metavar="loose|normal|tight|FILE", show_default="normal",
                                                     help="Between what to look; may be repeated.")] = None,
    loss: Annotated[list[str] | None, typer.Option(metavar="full|partial|inertia", show_default="full",
                                                   help="What to ask for beside the bounds; may be repeated.")] = None,
    search: Annotated[str, typer.Option(metavar="NAME", help="annealing, dual-annealing, differential-evolution, "
                                                             "gradient.")] = "annealing",
    form: Annotated[str, typer.Option(metavar="exact|penalty", help="Base values met exactly, or weighed against the "
                                                                    "rest.")] = "exact",
    one_step: Annotated[bool, typer.Option("--one-step", help="Measure the distance by the torques of the result's "
                                                              "logs.")] = False,
    nearest: Annotated[bool, typer.Option("--nearest", help="Where no robot has the base values, take those of the "
                                                            "nearest that can exist.")] = False,
    base: Annotated[Path | None, typer.Option("--base", metavar="TABLE", show_default=False,
                                              help="Base values from a CSV or TOML table: a combination and its "
                                                   "value a row.")] = None,
    runs: Annotated[int, typer.Option(help="At most so many runs.")] = 20,
    evaluations: Annotated[int, typer.Option(help="Of the loss, each iteration of a run.")] = 20000,
    seed: Annotated[int, typer.Option(help="Of the random numbers: another one, another set.")] = 0,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for the sets and their report.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier sets in that folder.")] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Extract full parameters from base values inside bounds, and compare their torques and inner forces."""
    from dynid.extraction import ExtractionOptions
    from dynid.extraction.searches import search_of
    from dynid.files import free_paths
    from dynid.runs.extracted_sets import FILES, base_values_of, checked_losses, extract_sets, save_sets

    step: Literal["one", "two"] = "one" if one_step else "two"
    options = ExtractionOptions(form=_form(form), step=step, search=search_of(search), runs=runs,
                                evaluations=evaluations, seed=seed, nearest=nearest)
    losses = checked_losses(loss or ["full"])
    if output is not None:
        free_paths(output, FILES, force)
    with progress("extract") as tell:
        given = base_values_of(source, base, folded=one_step, trust=trust)
        found = extract_sets(given, source, bounds or ["normal"], losses, options, tell)
        written = saved(save_sets, found, output, force, tell)
    if json:
        print_json({**found.to_dict(), "outputs": written})
    else:
        _print(found, written)


def _form(name: str) -> Literal["exact", "penalty"]:
    known: tuple[Literal["exact", "penalty"], ...] = ("exact", "penalty")
    found = next((one for one in known if one == name), None)
    if found is None:
        raise typer.BadParameter(f"the form is exact or penalty, not '{name}'", param_hint="--form")
    return found


def _print(found: ExtractedSets, written: dict[str, str]) -> None:
    """What people see: each set, why it cannot exist, how far its base values and inner forces are off."""
    to, compared = console(), found.comparison
    head = ["set", "can exist", "base values off", "bounds broken", "torques off, %", "forces off, N", "s"]
    to.print(table(head, [
        (one.name, "yes" if one.feasible else f"no: {one.reason}", f"{one.distance:.1e}", len(one.outside),
         f"{compared.torque_error(one.name):.2g}", f"{compared.forces_apart(one.name).max():.1f}",
         f"{one.seconds:.2f}") for one in found.sets], numbers=head[2:],
        title=f"{found.robot.name}, beside {compared.reference}"))
    for one in found.sets:
        for sentence in [violation.message for violation in one.violations][:_MOST] + list(one.outside)[:_MOST]:
            to.print(f"{one.name}: {sentence}", markup=False)
        if one.moved:
            to.print(f"{one.name}: the base values were moved by {one.moved:.3g} to the nearest that a robot can have.")
    cones = next((one.cones for one in found.sets if one.cones is not None), None)
    if cones is not None:
        said = "a robot inside the bounds has these base values" if cones.possible else cones.sentence
        to.print(f"The cone programme in {1e3 * cones.seconds:.0f} ms: {said}.", markup=False)
        if not cones.possible and all(one.form == "exact" and not one.moved for one in found.sets):
            to.print("--nearest extracts from the nearest base values that a robot can have, --form penalty weighs.")
    for what, path in written.items():
        to.print(f"{what}: {path}", markup=False)
