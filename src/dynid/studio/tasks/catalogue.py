"""Available robots, methods, terms, presets and motions, and an example for a first try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.actuators.laws import LAWS
from dynid.actuators.parameters import FRICTION_MODELS, FRICTION_TITLES, OPTIONAL_PARAMETERS
from dynid.estimate import methods
from dynid.excitation.search.criteria import CRITERIA
from dynid.excitation.trajectories.families import FAMILIES
from dynid.model.registry import FRICTION, KINDS
from dynid.recording.mapping import SIGNALS
from dynid.recording.presets import known_presets
from dynid.robot.robot_files import builtin_names
from dynid.runs.code_files import ENDINGS
from dynid.runs.demonstration import simulate_logs
from dynid.studio.confinement import Confinement
from dynid.studio.voice import ProgressChannel

EXAMPLE_ROLES = {"example_log.csv": "log", "example_validation.csv": "validation"}  # uploaded files of the example


def catalogue(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Return the available robots, methods, terms, presets and motions by name, each with a short description."""
    return {
        "robots": list(builtin_names()),
        "methods": [{"name": one.name, "summary": one.title, "needs": sorted(one.needs), "gives": sorted(one.gives),
                     "options": list(one.options)} for one in methods().values()],
        "terms": [{"name": name, "summary": _summary(term)} for name, term in KINDS.items()],
        "friction": [{"name": name, "summary": _summary(term)} for name, term in FRICTION.items()],
        "presets": [{"name": one.name, "recorder": one.recorder, "minds": list(one.minds), "source": one.source,
                     "refusal": one.refusal} for one in known_presets().values()],
        "motions": list(FAMILIES), "criteria": list(CRITERIA), "signals": ["time", *SIGNALS],
        "languages": list(ENDINGS), "friction_models": [
            {"name": name, "summary": FRICTION_TITLES[name]} for name in FRICTION_MODELS],
        "laws": [{"name": law.name, "summary": _summary(type(law)), "parameters": [
            {"name": one.name, "unit": one.unit, "estimated": one.name in law.estimated} for one in law.parameters]}
            for law in LAWS.values()], "also": list(OPTIONAL_PARAMETERS)}


def _summary(term: type) -> str:
    """Return the first paragraph of a term's description, on one line."""
    return " ".join((term.__doc__ or "").strip().partition("\n\n")[0].split())


def example(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Simulate the logs of the demonstration into the uploaded files and return the settings that use them."""
    log, validation = EXAMPLE_ROLES
    settings = simulate_logs(bounds.files, log, validation)
    return {"roles": EXAMPLE_ROLES, "settings": {
        "robot": settings.robot, "logs": [log], "validate_on": [validation],
        "model": {"friction": list(settings.model.friction)}}}
