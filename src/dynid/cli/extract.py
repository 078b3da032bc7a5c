"""`dynid extract`: full parameters from base values, by global search inside bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dynid.cli.options import Trust
from dynid.cli.output import Json, console, print_json, print_outputs, saved, show_progress, table

if TYPE_CHECKING:
    from dynid.runs.extracted_sets import ExtractedSets

MAX_REASONS_PRINTED = 4  # reasons printed per set

FormName = Literal["exact", "penalty"]


def command(
    source: Annotated[str, typer.Argument(metavar="RESULT|ROBOT", show_default=False,
                                          help="Result folder of `dynid identify -o`; or a robot, with --base.")],
    bounds: Annotated[list[str] | None, typer.Option(metavar="loose|normal|tight|FILE", show_default="normal",
                                                     help="Bounds of the search; may be repeated.")] = None,
    loss: Annotated[list[str] | None, typer.Option(
        metavar="full|partial|inertia", show_default="full",
        help="Conditions beside the bounds: full (consistent inertias, centres of mass inside links, total mass), "
             "inertia (consistent inertias) or partial (none); may be repeated.")] = None,
    search: Annotated[str, typer.Option(metavar="NAME", help="Search algorithm: annealing, dual-annealing, "
                                                             "differential-evolution or gradient.")] = "annealing",
    form: Annotated[FormName, typer.Option(help="exact: base values are constraints; penalty: differences from the "
                                                "base values are penalised.")] = "exact",
    one_step: Annotated[bool, typer.Option("--one-step", help="Measure the error of the base values by "
                                                              "the torques of the result's logs.")] = False,
    nearest: Annotated[bool, typer.Option("--nearest", help="If no physically consistent robot has the base values, "
                                                            "use the base values of the nearest one.")] = False,
    base: Annotated[Path | None, typer.Option("--base", metavar="TABLE", show_default=False,
                                              help="Base values from a CSV or TOML table, one combination "
                                                   "and its value per row.")] = None,
    runs: Annotated[int, typer.Option(help="Largest number of search runs.")] = 20,
    evaluations: Annotated[int, typer.Option(help="Loss evaluations per iteration of a search run.")] = 20000,
    seed: Annotated[int, typer.Option(help="Seed of the random search; another seed gives another set of "
                                           "parameters.")] = 0,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for the sets of parameters and their report.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier sets of parameters in the output "
                                                        "folder.")] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Extract full parameters from base values inside bounds, and compare their torques and internal forces."""
    from dynid.extraction import ExtractionOptions
    from dynid.extraction.searches import find_search
    from dynid.files import free_paths
    from dynid.runs.extracted_sets import FILES, checked_losses, extract_sets, read_base_values, save_sets

    step: Literal["one", "two"] = "one" if one_step else "two"
    options = ExtractionOptions(form=form, step=step, search=find_search(search), runs=runs,
                                evaluations=evaluations, seed=seed, nearest=nearest)
    losses = checked_losses(loss or ["full"])
    if output is not None:
        free_paths(output, FILES, force)
    with show_progress("extract") as progress:
        given = read_base_values(source, base, folded=one_step, trust=trust)
        found = extract_sets(given, source, bounds or ["normal"], losses, options, progress)
        written = saved(save_sets, found, output, force, progress)
    if json:
        print_json({**found.to_dict(), "outputs": written})
    else:
        _print(found, written)


def _print(found: ExtractedSets, written: dict[str, str]) -> None:
    """Print each parameter set, the reasons of its inconsistency, and the errors of base values and internal forces."""
    to, compared = console(), found.comparison
    head = ["set", "consistent", "base value error", "bounds violated", "torque error, %", "force error, N", "s"]
    to.print(table(head, [
        (one.name, "yes" if one.feasible else f"no: {one.reason}", f"{one.distance:.1e}", len(one.outside),
         f"{compared.torque_error(one.name):.2g}", f"{compared.force_differences(one.name).max():.1f}",
         f"{one.seconds:.2f}") for one in found.sets], numbers=head[2:],
        title=f"{found.robot.name}, compared with {compared.reference}"))
    for one in found.sets:
        messages = [violation.message for violation in one.violations]
        for sentence in messages[:MAX_REASONS_PRINTED] + list(one.outside)[:MAX_REASONS_PRINTED]:
            to.print(f"{one.name}: {sentence}", markup=False)
        if one.moved:
            to.print(f"{one.name}: the base values were changed by {one.moved:.3g} to the nearest physically "
                     "consistent ones.")
    cones = next((one.cones for one in found.sets if one.cones is not None), None)
    if cones is not None:
        text = "a robot within the bounds has these base values" if cones.possible else cones.sentence
        to.print(f"Feasibility by cone programming, {1000.0 * cones.seconds:.0f} ms: {text}.", markup=False)
        if not cones.possible and all(one.form == "exact" and not one.moved for one in found.sets):
            to.print("Use --nearest to extract from the nearest physically consistent base values, or --form penalty "
                     "for a weighted fit.")
    print_outputs(written)
