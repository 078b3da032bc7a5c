"""`dynid check`: can this robot exist, and if not, why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli.output import Json, console, print_json, progress

if TYPE_CHECKING:
    from dynid.runs.check import Check


def command(
    source: Annotated[str, typer.Argument(metavar="RESULT|ROBOT", show_default=False,
                                          help="Folder of an earlier `dynid identify -o`; or a URDF, a robot TOML or "
                                               "a built-in name.")],
    shapes: Annotated[bool | None, typer.Option("--shapes/--no-shapes", show_default=False,
                                                help="Whether a centre of mass outside the link's collision shapes "
                                                     "counts; by default in a robot file, and in a result whose run "
                                                     "asked for it.")] = None,
    json: Json = False,
) -> None:
    """Test a result or a robot for physical consistency, with reasons by link; exit code 1 if it is not."""
    from dynid.runs.check import check

    with progress("check") as tell:
        tell(source)
        found = check(source, shapes=shapes)
    if json:
        print_json(found.to_dict())
    else:
        show(found)
    if not found.consistent:
        raise typer.Exit(1)


def show(found: Check) -> None:
    """Print what was found for people."""
    to, test = console(), found.feasibility
    if found.consistent:
        headline = "every body can exist."
    elif {reason.kind for reason in found.reasons} == {"centre-of-mass"}:
        headline = "the bodies can exist, but not where they are said to be."
    elif not found.full:
        headline = "no robot has these base parameters. The closest links that would have them:"
    else:
        headline = "not physically consistent."
    to.print(f"{found.name}: {headline}", markup=False)
    for reason in found.reasons:
        to.print(f"- {reason.message}", markup=False)
    if test is not None and test.certificate is not None:
        to.print(f"The base parameters are {test.distance:.3g} (SI units) away from those of any robot that can exist. "
                 f"The proof {'is verified' if test.certificate.verify() else 'could not be verified'} and rests on: "
                 f"{'; '.join(test.certificate.reasons)}.", markup=False)
    for remark in found.remarks:
        to.print(f"Note: {remark}.", markup=False)
