"""What `dynid fleet` prints, at most one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.cli.output import console, table
from dynid.cli.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynid.fleet.result import FleetResult
    from dynid.fleet.robot_scatter import Differs

_SHOWN_JOINTS = 10  # of the table of cross-prediction
_SHOWN_ROBOTS = 4
_DIFFERS: tuple[Differs, Differs] = ("robots", "motions")


def print_fleet(result: FleetResult, written: Mapping[str, str]) -> None:
    """Print the robots that differ and how, the cross-prediction table of a small fleet, and where the results are."""
    screen = Screen(console())
    logs, failures = result.folded.entries, result.folded.failures
    screen.print(f"{len(result.robots)} robots of type {result.robot.name}, {len(logs)} logs, {result.folded.read} "
                 f"newly read, {len(failures)} not used")
    if len(result.cross.robots) in range(2, _SHOWN_ROBOTS + 1):
        errors = result.cross.between()
        head = ["model of", "on logs of", *result.cross.joints[:_SHOWN_JOINTS]]
        rows = [[one, other, *(f"{x:.1f}" for x in errors[i, j][:_SHOWN_JOINTS])]
                for i, one in enumerate(result.cross.robots) for j, other in enumerate(result.cross.robots)]
        screen.print(table(head, rows, numbers=head[2:], title="relative error, %"))
    names = result.out.pooling.base.names
    differing, moving = (result.scatter.named(what, names) for what in _DIFFERS)
    screen.print("differ between robots: " + (", ".join(differing) if differing else "no parameters"))
    if moving or result.scatter.crossed is not None:
        screen.print("differ only between motions: " + (", ".join(moving) if moving else "no parameters"))
    sentences = [*result.sentences, *(f"not used: {one.reason}" for one in failures), *result.notes]
    shown = screen.print_what_fits(sentences, spare=len(written) + 2)
    if shown < len(sentences):
        screen.print(f"and {len(sentences) - shown} more; -o FOLDER writes a page with all of them")
    if not result.sentences:
        screen.print("no robot differs significantly, and none changed")
    for name, path in written.items():
        screen.print(f"{name}: {path}")
