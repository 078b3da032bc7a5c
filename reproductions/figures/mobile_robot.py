"""Figures of mobile-robot: the inputs, the path, and the prediction errors of the models."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.report.drawing import Drawing, Panel, PlotCurve
from reproductions._printed import printed
from reproductions.figures.panels import bars
from reproductions.mobile_robot import DRIVE, METHODS, OUTPUTS, motion

TIME = "time, s"


def figures(result: dict[str, Any]) -> list[Drawing]:
    reference = motion()
    t = np.arange(len(reference.q)) / reference.rate
    speed, turn = (reference.dq @ DRIVE.to_body.T).T
    heading = np.cumsum(turn) / reference.rate
    x, y = (np.cumsum(speed * part) / reference.rate for part in (np.cos(heading), np.sin(heading)))
    inputs = tuple(Panel(name, TIME, label, (PlotCurve(name, t[::5].tolist(), column[::5].tolist()),))
                   for name, label, column in (("speed", "speed, m/s", speed), ("turn rate", "turn rate, rad/s", turn)))
    path = Panel("path on the floor", "x, m", "y, m", (PlotCurve("path", x[::5].tolist(), y[::5].tolist()),),
                 is_map=True)
    fits = tuple(bars(OUTPUTS, result["medians"][name], {method: printed("000", name).values(method)
                                                         for method in methods},
                      f"table {name}, median of all logs", "fitness, %") for name, methods in METHODS.items())
    return [Drawing("The motion", "figures E.2 and E.3: speed and turn rate as Fourier series over 30 s, and the "
                    "positions that the robot passes.", (*inputs, path)),
            Drawing("How well new motions are predicted", "tables E.4 and E.5: with white noise both methods predict "
                    "above 90 %, the balanced model not the turn rate; with slipping wheels instruments predict "
                    "better.", fits)]
