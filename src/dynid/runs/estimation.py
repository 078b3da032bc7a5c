"""Estimation in a run by the given method, or with method and position-dependent torques chosen from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.choice import AUTO
from dynid.estimate.chosen_friction import FrictionChoice
from dynid.model import Cable, required_robot_model
from dynid.runs.loading import LoadedProblem, compressed
from dynid.runs.settings import RunSettings

if TYPE_CHECKING:
    from dynid.estimate.cable_choice import CableFit

_CABLE_NOTE = (
    "torques that depend on the position of a joint (cable) are part of the model: without them the data contradict "
    "every physically consistent robot. Cables, hoses or torque sensors cause them; --friction viscous,coulomb,offset "
    "leaves them out"
)


def estimate_of_run(loaded: LoadedProblem) -> tuple[LoadedProblem, Estimate]:
    """Return the estimate of a run, and its problem. If method and friction are chosen from the data, torques that
    depend on position (cables) are tried too.
    """
    settings, problem, dataset, friction = loaded.settings, loaded.problem, loaded.problem.dataset, loaded.friction
    is_chosen = settings.method == AUTO and not settings.options and friction is not None
    is_plain = not loaded.robot.has_free_base and problem.controller is None and problem.regression.prior is None
    if not (is_chosen and is_plain) or friction is None or dataset is None:
        return loaded, identify(problem, method=settings.method, **settings.options)
    names = loaded.robot.joint_names

    def with_cables(joints: Sequence[int]) -> Problem:
        return compressed(_with_cables(settings, [names[j] for j in joints]), loaded.robot, dataset)

    from dynid.estimate.cable_choice import identify_with_cables  # imported here, because few runs try cables

    found = identify_with_cables(problem, with_cables)
    if isinstance(found, Estimate):
        return loaded, found
    some = [names[j] for j in found.worths]
    loaded = replace(loaded, problem=found.problem, settings=_with_cables(settings, some),
                     friction=_chosen(friction, found, some), chosen_notes=(*loaded.chosen_notes, _CABLE_NOTE))
    return loaded, found.estimate


def _with_cables(settings: RunSettings, joints: Sequence[str]) -> RunSettings:
    """Return the settings with position-dependent torques (cables) at some joints."""
    model = settings.model
    return settings.model_copy(update={"model": model.model_copy(update={"terms": (*model.terms, _table(joints))})})


def _table(joints: Sequence[str]) -> dict[str, object]:
    return {"kind": Cable.kind, "joints": list(joints)}


def _chosen(friction: FrictionChoice, found: CableFit, joints: Sequence[str]) -> FrictionChoice:
    """Return the choice of friction, extended by the chosen torques that depend on position."""
    worths = dict(zip(joints, found.worths.values(), strict=True))
    each = tuple(replace(one, taken=(*one.taken, worths[one.joint])) if one.joint in worths else one
                 for one in friction.joints)
    return replace(friction, joints=each, tables=(*friction.tables, _table(joints)),
                   model=required_robot_model(found.problem.model, "the choice of friction"))
