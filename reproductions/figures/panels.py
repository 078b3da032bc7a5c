"""Panels that several figures have: one for each joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynid.report.drawing import Panel, PlotCurve, Role

Heights = Mapping[str, Sequence[float | None]]
ROLES: dict[str, Role] = {"true": "true", "sensed": "true", "real": "true", "reference": "printed",
                          "commanded": "printed"}


def by_joint(t: Sequence[float], signals: Mapping[str, Sequence[Sequence[float | None]]], x: str, y: str,
             joints: Sequence[int] | None = None) -> tuple[Panel, ...]:
    """Return one panel per joint of signals by name, each with one sequence per joint. joints: numbers of the joints,
    from 1; default: all."""
    count = len(next(iter(signals.values())))
    return tuple(Panel(f"joint {j}", x, y, tuple(PlotCurve(name, t, columns[j - 1], role=ROLES.get(name, "ours"))
                                                 for name, columns in signals.items()))
                 for j in joints or range(1, count + 1))


def bars(names: Sequence[str], ours: Heights, printed: Heights, title: str, y: str,
         logarithmic: bool = False) -> Panel:
    """Return a panel of bars with computed and printed values. names: labels along the x axis."""
    curves = [PlotCurve(name, names, values, "bars") for name, values in ours.items()]
    curves += [PlotCurve(f"{name}, printed", names, values, "bars", "printed") for name, values in printed.items()]
    return Panel(title, "", y, tuple(curves), logarithmic)
