"""The tables that `dynid compare` prints for two results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.cli.output import console, table

if TYPE_CHECKING:
    from dynid.runs.compared_results import ComparedResults

_MOST_COMPARED = 15  # parameters that one screen has room for


def print_compared_results(found: ComparedResults) -> None:
    """Print the parameters of two results that differ most, and what the difference means in torque."""
    to, both = console(), found.comparison
    order = sorted(range(len(both.names)), key=lambda k: -abs(both.apart[k]) if both.apart[k] == both.apart[k] else 0.0)
    rows = [(both.names[k], f"{both.values_a[k]:.4g} ± {both.std_a[k]:.1g}",
             f"{both.values_b[k]:.4g} ± {both.std_b[k]:.1g}", f"{both.difference[k]:+.3g}",
             f"{both.apart[k]:+.1f}" if both.apart[k] == both.apart[k] else "-") for k in order[:_MOST_COMPARED]]
    head = ["base parameter", "a", "b", "b - a", "in standard errors"]
    to.print(table(head, rows, numbers=head[1:], title=f"a: {found.result_a}, b: {found.result_b}"))
    if len(order) > len(rows):
        to.print(f"{len(order) - len(rows)} more differ less; --json lists all")
    far = both.different
    to.print(f"{len(far)} of {len(both.names)} differ by more than three standard errors" + (
        "" if both.rms_apart is None else f"; root mean square difference {both.rms_apart:.2f} standard errors (1 "
                                          "expected from noise alone)"))
    for who, names in (("a", both.only_a), ("b", both.only_b)):
        if names:
            to.print(f"only in {who}: {', '.join(names)}", markup=False)
    for one in both.torques:
        per_joint = [(name, f"{rms:.3g}", f"{100.0 * rms / size:.2f}" if size > 0 else "-")
                for name, rms, size in zip(one.joints, one.rms, one.torque_rms, strict=True)]
        head = ["joint", "torque difference b - a, rms", "of the torque, %"]
        to.print(table(head, per_joint, numbers=head[1:], title=f"on {one.source}"))
