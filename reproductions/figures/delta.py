"""Figures of delta: positions simulated with both sets of parameters, and the parameters."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions.delta import PRINTED
from reproductions.figures.panels import bars

NAMES = {"kernel": "kernels", "savitzky_golay": "filtered derivatives"}


def figures(result: dict[str, Any]) -> list[Drawing]:
    curves = result["curves"]
    t = curves["t"]
    positions = tuple(Panel(f"q{j + 1}, first stretch", "time, s", "position, rad", (
        PlotCurve("true", t, curves["real"][j], role="true"),
        *(PlotCurve(words, t, curves[name]["q"][j]) for name, words in NAMES.items()))) for j in range(3))
    apart = Panel("distance from the true positions, all stretches", "time, s", "distance, rms, mrad",
                  tuple(PlotCurve(words, t, [1e3 * x for x in curves[name]["apart"]]) for name, words in NAMES.items()))
    first = next(iter(result["kernels"].values()))["ols"]
    names = list(PRINTED)
    ours = {"filtered derivatives": [result["our_change_percent"][name] for name in names],
            "kernels, difference from the truth": [100.0 * (first[name] / PRINTED[name][1] - 1.0) for name in names]}
    printed = {"filtered derivatives": [result["printed_change_percent"][name] for name in names]}
    return [Drawing("Simulated positions", "figure 3: positions simulated with both sets follow the measured ones, "
                    "those with parameters from kernels more closely; below, the norm of the difference.",
                    (*positions, apart)),
            Drawing("Parameters", "table I: thirteen parameters by filtered derivatives and by kernels.",
                    (bars(names, ours, printed, "difference from the values by kernels", "change, %"),))]
