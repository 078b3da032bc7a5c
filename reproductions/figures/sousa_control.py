"""Figures of sousa-control: free falls, energies, and motion B under controllers that use each model."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions.figures.panels import by_joint

TIME, ANGLE = "time, s", "position, rad"


def figures(result: dict[str, Any]) -> list[Drawing]:
    falls, follow = result["fall"], result["follow"]
    infeasible, *feasible = falls
    extended = feasible[-1]
    return [
        Drawing("Let go from q = 0, weighted least squares", "figures 5.1 and 5.2: the simulation with the classical "
                "parameters breaks off after 0.041 s, while the energy grows without end.",
                (_positions(falls[infeasible]), _energies({infeasible: falls[infeasible]}, "kinetic energy"))),
        Drawing("Let go from q = 0, feasible parameters", "figures 5.3 and 5.4: with the three feasible solutions the "
                "arm falls and its total energy only falls.",
                (_positions(falls[extended]), _energies({name: falls[name] for name in feasible}, "total energy"))),
        _followed(follow[f"{infeasible}, slow"], "Motion B, the controller believes weighted least squares",
                  "figure 5.6: the arm leaves the reference as soon as motion B begins and is stopped."),
        _followed(follow[f"{extended}, slow"], "Motion B, feasible parameters, slow gains",
                  "figure 5.7: positions follow the dashed reference with an error that is seen, most in the wrist."),
        _followed(follow[f"{extended}, tight"], "Motion B, feasible parameters, tight gains",
                  "figure 5.8: positions lie on the dashed reference.")]


def _positions(fall: dict[str, Any]) -> Panel:
    return Panel("positions", TIME, ANGLE, tuple(PlotCurve(f"joint {j}", fall["t"], q)
                                                for j, q in enumerate(fall["q"], 1)))


def _energies(falls: dict[str, Any], title: str) -> Panel:
    return Panel(title, TIME, f"{title}, J", tuple(PlotCurve(name, fall["t"], fall["energy"][0])
                                                         for name, fall in falls.items()))


def _followed(run: dict[str, Any], title: str, document: str) -> Drawing:
    signals = {"reference": run["wanted"], "simulated": run["q"]}
    return Drawing(title, document, by_joint(run["t"], signals, "time since motion B begins, s", ANGLE))
