"""Example for a first try: logs of the demonstration's simulated robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.runs.demonstration import simulate_logs
from dynid.studio.confinement import Confinement
from dynid.studio.voice import ProgressChannel

EXAMPLE_ROLES = {"example_log.csv": "log", "example_validation.csv": "validation"}  # uploaded files of the example


def example(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Simulate the logs of the demonstration into the uploaded files and return the settings that use them."""
    log, validation = EXAMPLE_ROLES
    settings = simulate_logs(bounds.files, log, validation)
    return {"roles": EXAMPLE_ROLES, "settings": {
        "robot": settings.robot, "logs": [log], "validate_on": [validation],
        "model": {"friction": list(settings.model.friction)}}}
