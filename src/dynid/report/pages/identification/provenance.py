"""Section on the written robot file, and on how to repeat the identification."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np

from dynid.estimate.problem import method_title
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import file_name, number
from dynid.version import __version__

_PACKAGES = ("numpy", "scipy", "numba", "clarabel")


def gather(data: ReportData) -> Mapping[str, Any]:
    facts = data.estimate.diagnostics
    rows = [("method", f"{data.estimate.method}: {method_title(data.estimate.method)}")]
    if data.robot is not None:
        rows.append(("robot", f"{data.robot.name}, {data.robot.dof} joints"
                     + (f", from {file_name(data.robot.source)}" if data.robot.source else "")))
        rows.append(("gravity", f"({', '.join(number(g) for g in np.asarray(data.robot.gravity))}) m/s²"))
    options = {str(key): value for key, value in dict(data.estimate.provenance.get("options", {})).items()}
    if options:
        rows.append(("options", ", ".join(f"{key} = {value}" for key, value in options.items())))
    if "condition" in facts:
        rows.append(("condition number of the scaled regression", number(float(facts["condition"]), 3)))
    rows += [(str(key), number(value) if isinstance(value, float) else str(value))
             for key, value in data.problem.items()]
    return {"rows": rows, "command": data.command, "settings": data.settings, "seconds": data.seconds,
            "versions": versions(), "file": data.written_file}


def versions() -> list[tuple[str, str]]:
    """Return the versions of dynid, Python and its libraries."""
    found = [("dynid", __version__), ("Python", platform.python_version())]
    for package in _PACKAGES:
        try:
            # Only the first lines of the metadata are read: parsing all of it, with licences, is slow.
            facts = (distribution(package).read_text("METADATA") or "").split("\n\n", 1)[0].splitlines()
            found += [(package, line.partition(": ")[2]) for line in facts if line.startswith("Version: ")]
        except PackageNotFoundError:
            continue
    return found


SECTION = Section("provenance", "Provenance", gather)
