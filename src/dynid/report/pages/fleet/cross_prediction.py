"""Cross-prediction: a heat map of the error of one robot's model on the logs of another, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.pages.fleet.data import FleetData
from dynid.report.section import Section

GOOD, POOR = 10.0, 50.0  # percent: green below, red above (Ardiani, table F.1)
_COLORS = {"good": "#cdebdf", "poor": "#f6cdb8", "fair": "transparent"}


def gather(data: FleetData) -> Mapping[str, Any] | None:
    if len(data.cross_robots) < 2:
        return None
    rows = [{"model": data.cross_robots[i], "robot": data.cross_robots[j], "first": j == 0, "own": i == j,
             "cells": [(float(x), _COLORS[_grade(float(x))]) for x in data.cross[i, j]]}
            for i in range(len(data.cross_robots)) for j in range(len(data.cross_robots))]
    return {"rows": rows, "joints": data.joints, "good": GOOD, "poor": POOR, "span": len(data.cross_robots)}


def _grade(error: float) -> str:
    return "fair" if not np.isfinite(error) else "good" if error < GOOD else "poor" if error > POOR else "fair"


SECTION = Section("cross_prediction", "Cross-prediction between robots", gather)
