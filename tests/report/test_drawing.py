"""Drawings: what is ours, printed and true looks so, and figures hold plain numbers."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dynid.report.drawing import Panel, PlotCurve, thinned
from dynid.report.figure import MEASURED, SERIES

FIGURES = Path(__file__).resolve().parents[2] / "reproductions" / "figures"


def test_roles_are_told_apart() -> None:
    panel = Panel("a", "x, s", "y, m", (
        PlotCurve("true", (0, 1), (1.0, None), role="true"), PlotCurve("one", (0, 1), (1.0, 2.0)),
        PlotCurve("two", (0, 1), (1.0, 2.0)), PlotCurve("printed", (0, 1), (1.0, 2.0), "points", "printed")))
    figure = panel.figure()
    json.dumps(figure.data, allow_nan=False)
    true, one, two, printed = figure.data
    assert true["line"]["color"] == MEASURED and true["y"] == [1.0, None]
    assert (one["line"]["color"], two["line"]["color"]) == SERIES[:2]
    assert printed["mode"] == "markers" and printed["marker"]["symbol"] == "circle-open"


def test_bars_keep_their_names_and_logarithms_their_ticks() -> None:
    panel = Panel(
        "a",
        "",
        "error, %",
        (
            PlotCurve("one", ["joint 1", "joint 2"], (0.5, 20.0), "bars"),
            PlotCurve("one, printed", ["joint 1", "joint 2"], (1.0, 30.0), "bars", "printed"),
        ),
        logarithmic=True,
    )
    bars, printed = panel.figure().data
    assert bars["x"] == ["joint 1", "joint 2"] and "pattern" in printed["marker"]
    assert panel.figure().layout["yaxis"]["type"] == "log"


def test_a_thinned_curve_keeps_its_extremes() -> None:
    t = np.arange(10000) / 1000.0
    y = np.sin(t)
    y[4321] = 7.0
    times, (column,) = thinned(t, y[:, None], 200)
    assert len(times) == len(column) <= 210 and max(x for x in column if x is not None) == 7.0
    assert times[0] == 0.0 and times[-1] == pytest.approx(t[-1])


@pytest.mark.parametrize("name", sorted(path.stem for path in FIGURES.glob("*.py") if path.stem != "panels"))
def test_every_file_of_figures_belongs_to_a_reproduction(name: str) -> None:
    assert (FIGURES.parent / f"{name}.py").exists()
    assert callable(import_module(f"reproductions.figures.{name}").figures)
