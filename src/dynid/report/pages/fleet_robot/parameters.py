"""Parameters of one robot next to those of its fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.fleet_robot.data import FleetRobotData
from dynid.report.section import Section


def gather(data: FleetRobotData) -> Mapping[str, Any]:
    rows = [{"name": name, "unit": data.units[k], "value": float(data.values[k]), "std": float(data.std[k]),
             "alone": float(data.alone[k]), "alone_std": float(data.alone_std[k]), "mean": float(data.mean[k]),
             "lean": float(data.lean[k])} for k, name in enumerate(data.names)]
    return {"rows": rows, "sentences": data.sentences}


SECTION = Section("parameters", "Parameters", gather)
